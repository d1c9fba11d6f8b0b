import { localScript } from './local-script';

/** Meets each machine whose host key nobody knows, and answers with the keys of all: nothing else is sent to them before these are stored. */
export function meetScript(cluster: string, id: string): string {
  return localScript(cluster, id, MEET);
}

const MEET = String.raw`check_hosts
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
