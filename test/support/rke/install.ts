import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the stand-in for `rke` is to do: see stand-in.cjs. */
export interface RkeControl {
  readonly fail?: 'before-state' | 'after-state' | 'after-nodes' | 'disk-full' | 'hang';
  /** With `after-nodes`: how many machines it sets up first. */
  readonly nodes?: number;
  /** Fail each time, not just once. */
  readonly always?: boolean;
  readonly unreachable?: readonly string[];
  /** Program that makes a control plane: its argument is an address, its output a kubeconfig. */
  readonly hook?: string;
  readonly version?: string;
}

/** One start of the stand-in. */
export interface RkeCall {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** The stand-in for `rke`, installed in a folder. */
export interface RkeStandIn {
  /** Folder for the PATH. */
  readonly bin: string;
  readonly folder: string;
  control(control: RkeControl): void;
  calls(): readonly RkeCall[];
  /** Addresses of the machines that are set up. */
  machines(): readonly string[];
}

/** Makes a folder with an executable `rke` in it. */
export function installRke(folder: string): RkeStandIn {
  const bin = join(folder, 'bin');
  mkdirSync(bin, { recursive: true });
  const script = join(__dirname, 'stand-in.cjs');
  writeFileSync(join(bin, 'rke'), `#!/bin/sh\nexec '${process.execPath}' '${script}' '${folder}' "$@"\n`);
  chmodSync(join(bin, 'rke'), 0o755);
  const calls = join(folder, 'calls.jsonl');
  return {
    bin,
    folder,
    control: (control) => writeFileSync(join(folder, 'control.json'), JSON.stringify(control)),
    calls: () =>
      existsSync(calls)
        ? readFileSync(calls, 'utf8')
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as RkeCall)
        : [],
    machines: () => (existsSync(join(folder, 'machines')) ? readdirSync(join(folder, 'machines')).sort() : []),
  };
}
