import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** Every command line and environment that was seen, of this machine and of all hosts on it. */
export interface ProcessRecording {
  /** Ends it. @returns what was seen, one process after the other */
  stop(): Promise<string>;
}

/** Records what anyone could see in `/proc` from now on: a look at all processes every few milliseconds. */
export async function recordProcesses(): Promise<ProcessRecording> {
  const child = spawn(process.execPath, [join(__dirname, 'process-recorder-child.cjs')], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {},
  });
  let seen = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (seen += chunk));
  await once(child.stdout, 'data'); // it has looked once
  return {
    stop: async () => {
      child.stdin.end();
      await once(child, 'close');
      return seen;
    },
  };
}
