import { ANSWER, MASK, RUN, SETUP, UNEXPECTED_EXIT } from '../../shell/prelude';
import { sh } from '../../shell/quote';
import { HOST_KEYS } from './host-keys';
import { CLUSTER_LOCK } from './lock';
import { READ_INPUT, RUN_FOLDER, RUN_RKE } from './run-folder';
import { STATE_COPIES } from './state';

/** A script that works on a whole cluster from where the plan is carried out, with `rke` and `ssh`. */
export function localScript(cluster: string, id: string, body: string): string {
  return [
    `# ${id} of the cluster ${cluster}`,
    SETUP,
    // What programs say goes to the log of the run, and nowhere else.
    'TEMPORARY=${TMPDIR:-/tmp}',
    `cluster=${sh(cluster)}`,
    `doing='making a folder for the run'`,
    MASK,
    ANSWER,
    UNEXPECTED_EXIT,
    RUN,
    RUN_FOLDER,
    'exec >>"$log" 2>&1',
    READ_INPUT,
    RUN_RKE,
    HOST_KEYS,
    CLUSTER_LOCK,
    STATE_COPIES,
    body,
    '',
  ].join('\n');
}
