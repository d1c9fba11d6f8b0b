import { buildRkeScript } from './local-script';

/** Options of {@link upScript}. */
interface UpScriptProps {
  readonly cluster: string;
  readonly id: string;
  /**
   * When `rke up` fails and there is a state, succeed with the output `outcome` = `failed`: for a runner that
   * drops the outputs of a failed task.
   * @default false
   */
  readonly keepFailedRuns?: boolean;
  /**
   * Pass on the outputs of the task before if it succeeded (stdin `outcome` = `ok`), and run `rke up` only if
   * it failed.
   * @default false
   */
  readonly afterRun?: boolean;
}

/**
 * `rke up`: first creates the state with all keys and certificates (`--init` changes no machine) and stores
 * it, then changes the machines, then stores the state again, whether that succeeded or not.
 */
export function upScript({ cluster, id, keepFailedRuns = false, afterRun = false }: UpScriptProps): string {
  return buildRkeScript(
    cluster,
    id,
    [...(afterRun ? [FORWARD_OUTPUTS] : []), INIT_STATE, keepFailedRuns ? FAIL_KEEPING_OUTPUTS : FAIL, UP].join('\n'),
  );
}

const FORWARD_OUTPUTS = String.raw`if [ "$(cat "$dir/in/outcome" 2>/dev/null)" = ok ]; then
  for name in state serial kubeconfig; do
    if [ -s "$dir/in/$name" ]; then give_file "$name" "$dir/in/$name"; fi
  done
  finish
fi`;

const INIT_STATE = String.raw`check_hosts
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
keep_keys
changed=true`;

const FAIL = String.raw`failed() { die "$1" "$2"; }
outcome() { :; }`;

const FAIL_KEEPING_OUTPUTS = String.raw`outcome() {
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

/**
 * `rke remove`, then deletes the copies of the state. Machines may be lost, as long as one etcd machine
 * responds.
 */
export function removeScript(cluster: string, id: string): string {
  return buildRkeScript(cluster, id, REMOVE);
}

const REMOVE = String.raw`check_hosts
lock_cluster "$dir/in/machines"
if [ "$locked" -eq 0 ]; then note 'no control plane machine could be locked, so another run of RKE would not have been noticed'; fi
doing='rke remove'
result=0
rke_run remove --force --config ../cluster.yml $flags || result=$?
gone=$(sed -n 's/.*Failed to set up SSH tunneling for host \[\([^]]*\)\].*/\1/p' "$log" | sort -u | tr '\n' ' ')
words=$(rke_words)
if [ "$result" -ne 0 ]; then
  changed=true
  if grep -q 'must have at least one etcd plane host' "$log"; then
    die Unreachable "no machine with the role etcd answers ($gone), and without one RKE removes nothing. If they are gone for good, clean what is left of the others by hand and have this step forgotten; else bring one back and run again"
  fi
  die RkeFailed "rke remove ended with exit code $result; run again. It said:
$words"
fi
changed=true
if [ -n "$gone" ]; then note "not cleaned, because they do not answer: $gone"; fi
doing='removing the copies of the state'
forget_state
finish`;

/**
 * Fetches unknown host keys, and outputs those of all machines, to be stored before anything else is sent to
 * them.
 */
export function hostKeyScanScript(cluster: string, id: string): string {
  return buildRkeScript(cluster, id, SCAN_HOST_KEYS);
}

const SCAN_HOST_KEYS = String.raw`check_hosts
unmet=''
while read -r alias address port; do
  if is_known "$alias"; then
    sed -n "s/^$alias /[$address]:$port /p" "$dir/known_hosts"
  else
    unmet="$unmet $address"
  fi
done <"$dir/hosts" >"$dir/keys"
if [ -n "$unmet" ]; then
  die Unreachable "no host key is known of$unmet, and it cannot be asked for it: it does not answer. Bring it back, take it out of the cluster.yml, or give its key in spec.hostKeys"
fi
cat "$dir/keys" "$dir/in/met_keys" 2>/dev/null | awk '!seen[$1]++' >"$dir/all-keys"
give_file host_keys "$dir/all-keys"
finish`;
