import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorProcess } from '../../testing';

/**
 * A program that starts an operator of a cluster that is not there, prints its pid, and forgets it: operator-process.test.ts ends it.
 *
 * Arguments: a folder of its own; `stay` or `leave`; `frozen` or `awake`.
 */
const [folder = '', stay, frozen] = process.argv.slice(2);
const kubeconfig = join(folder, 'kubeconfig');
writeFileSync(
  kubeconfig,
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'nowhere', cluster: { server: 'http://127.0.0.1:1' } }],
    users: [{ name: 'nobody', user: {} }],
    contexts: [{ name: 'it', context: { cluster: 'nowhere', user: 'nobody' } }],
    'current-context': 'it',
  }),
);
OperatorProcess.start({ kubeconfig }).then(
  (operator) => {
    if (frozen === 'frozen') operator.pause();
    if (stay === 'stay') setInterval(() => undefined, 1000);
    console.log(operator.pid);
  },
  (error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  },
);
