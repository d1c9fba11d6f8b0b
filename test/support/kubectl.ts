import { spawnSync } from 'node:child_process';

/** Whether there is a kubectl on PATH to compare with. Says so once per test file where there is none. */
export const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
if (!hasKubectl) process.stderr.write('no kubectl on PATH: what it does with the same kubeconfig is not compared\n');
