import type { ProviderRequest } from '../../provider';

/** How a machine is reached. */
export interface Connection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password?: string;
  readonly privateKey?: string;
  readonly privateKeyPassword?: string;
  readonly agentSocketPath?: string;
  /** `<type> <base64>`, as in authorized_keys. Without it any host key is taken. */
  readonly hostKey?: string;
  /** Failed attempts that are borne; -1: any number. */
  readonly dialErrorLimit: number;
  /** In seconds; 0: no limit. */
  readonly perDialTimeout: number;
  readonly proxy?: Connection;
}

/** Inputs of a Command, local or remote. */
export interface CommandInputs {
  readonly create?: string;
  readonly update?: string;
  readonly delete?: string;
  readonly stdin?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly logging?: 'stdout' | 'stderr' | 'stdoutAndStderr' | 'none';
  readonly addPreviousOutputInEnv?: boolean;
  /** Only remote. */
  readonly connection?: Connection;
  /** Only local. */
  readonly dir?: string;
  /** Only local. */
  readonly interpreter?: readonly string[];
}

/** One command that is to run. */
export interface CommandRun {
  readonly request: ProviderRequest;
  readonly command: string;
  readonly inputs: CommandInputs;
  readonly env: Readonly<Record<string, string>>;
}

/** What a command printed, without the last newline. */
export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
}

/** Keeps what a command prints, and logs it line by line as `logging` says. */
export class Capture {
  private readonly all: Buffer[] = [];
  private readonly parts = { stdout: [] as Buffer[], stderr: [] as Buffer[] };

  constructor(private readonly run: CommandRun) {}

  take(stream: 'stdout' | 'stderr', chunk: Buffer): void {
    this.all.push(chunk);
    this.parts[stream].push(chunk);
  }

  /**
   * The command has ended.
   *
   * @param failure - why it counts as failed; undefined: it did not
   * @throws Error with the whole text of the command and all it printed, as the real provider's
   */
  end(failure: string | undefined): Ran {
    this.log();
    const { command } = this.run;
    if (failure !== undefined) {
      throw new Error(`${failure}: running ${JSON.stringify(command)}:\n${Buffer.concat(this.all).toString('utf8')}`);
    }
    return { stdout: this.text('stdout').replace(/\n$/, ''), stderr: this.text('stderr').replace(/\n$/, '') };
  }

  private log(): void {
    const { logging = 'stdoutAndStderr' } = this.run.inputs;
    for (const stream of ['stdout', 'stderr'] as const) {
      if (logging !== 'stdoutAndStderr' && logging !== stream) continue;
      const lines = this.text(stream).split('\n');
      if (lines.at(-1) === '') lines.pop();
      for (const line of lines) this.run.request.log('info', line);
    }
  }

  private text(stream: 'stdout' | 'stderr'): string {
    return Buffer.concat(this.parts[stream]).toString('utf8');
  }
}
