import { localScript } from './local-script';

/** What to do when `rke up` fails. */
export interface UpScriptProps {
  readonly cluster: string;
  readonly id: string;
  /**
   * End well even so, as long as there is a state, with the output `outcome` = `failed`: for a carrier that forgets the outputs of what failed.
   * @default false
   */
  readonly keepFailedRuns?: boolean;
  /**
   * Pass on what a run before gave (stdin `outcome` = `ok`), and run only if that failed.
   * @default false
   */
  readonly afterRun?: boolean;
}

/**
 * `rke up`: first the state with all keys and certificates is made (`--init` touches no machine) and kept, then the machines are touched, then
 * the state is kept again, whatever came of it.
 */
export function upScript({ cluster, id, keepFailedRuns = false, afterRun = false }: UpScriptProps): string {
  return localScript(
    cluster,
    id,
    [...(afterRun ? [PASS_ON] : []), MAKE_STATE, keepFailedRuns ? KEEP_FAILED : FAIL, UP].join('\n'),
  );
}

const PASS_ON = String.raw`if [ "$(cat "$dir/in/outcome" 2>/dev/null)" = ok ]; then
  for name in state serial kubeconfig; do
    if [ -s "$dir/in/$name" ]; then give_file "$name" "$dir/in/$name"; fi
  done
  finish
fi`;

const MAKE_STATE = String.raw`check_hosts
lock_cluster "$dir/in/machines"
require_lock
find_state
check_leaving
lock_cluster "$dir/leaving-machines"
doing='rke up --init'
# flags is a word or nothing, made by us.
# shellcheck disable=SC2086
rke_run up --init --config ../cluster.yml $flags || die RkeFailed "rke refuses the configuration; no machine has been touched. It said:
$(rke_words)"
if ! keep_state; then
  die StateNotKept "the state of the cluster, with all its keys, could be written to none of its control plane machines, so nothing has been begun: see that SSH gets there with the pinned host key, and that the disk has room. ssh said:
$(last_lines "$log" | unrevealing)"
fi
changed=true`;

const FAIL = String.raw`failed() { die "$1" "$2"; }
outcome() { :; }`;

const KEEP_FAILED = String.raw`outcome() {
  printf '%s' "$1" >"$dir/outcome"
  give_file outcome "$dir/outcome"
}
failed() {
  outcome failed
  note "$2"
  note 'Its state has been kept; the step after this one tries once more.'
  finish
}`;

const UP = String.raw`doing='rke up'
result=0
rke_run up --config ../cluster.yml $flags || result=$?
words=$(rke_words)
doing='keeping the state of the cluster'
if ! keep_state; then note "the newest state could be written to none of the control plane machines; it is in the output of this run"; fi
give_state
if [ -s "$dir/kube_config_cluster.yml" ]; then give_file kubeconfig "$dir/kube_config_cluster.yml"; fi
if [ "$result" -ne 0 ]; then
  if [ "$stopped" = 1 ]; then words="$words
This run was told to stop."; fi
  failed RkeFailed "rke up ended with exit code $result; run again, it goes on from where it is. It said:
$words"
fi
if [ ! -s "$dir/kube_config_cluster.yml" ]; then failed RkeFailed 'rke up ended well, but wrote no kubeconfig'; fi
outcome ok
finish`;
