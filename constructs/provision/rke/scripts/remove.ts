import { localScript } from './local-script';

/** `rke remove`, and the copies of the state after it. Machines that are gone do not stand in its way, as long as one etcd machine answers. */
export function removeScript(cluster: string, id: string): string {
  return localScript(cluster, id, REMOVE);
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
