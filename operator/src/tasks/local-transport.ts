import { runProgram } from './run-program';
import { MachineError, type Transport, type TransportRequest, type TransportResult } from './transport';

/** Runs scripts on this machine, by `sh`, as the user that this process runs as. */
export class LocalTransport implements Transport {
  /** @param env - environment of the scripts. @default PATH and HOME of this process, and nothing else of it */
  constructor(private readonly env?: Readonly<Record<string, string>>) {}

  async run({ machine, script, stdin, timeoutSeconds, signal }: TransportRequest): Promise<TransportResult> {
    if (machine !== undefined) {
      throw new MachineError('InvalidMachine', `${machine.address} is another machine; it takes a transport by SSH`);
    }
    const where = 'on this machine';
    const args = ['-c', script];
    const env = this.env ?? { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '/' };
    const end = await runProgram({ program: 'sh', args, env, stdin, timeoutSeconds, signal, where });
    const { exitCode, stdout, stderr } = end;
    if (exitCode !== null) return { exitCode, stdout, stderr };
    throw new MachineError('ConnectionLost', `the script ${where} was ended by a signal; running it again is safe`);
  }
}
