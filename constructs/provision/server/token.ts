import { sh } from '../shell/quote';
import { script } from '../shell/script';
import { BROKEN } from '../shell/wait';
import type { Task } from '../task';
import { factsOf } from './facts';
import type { ServerInput } from './facts';
import { internalAddress, layoutOf, machineOf, urlHost } from './layout';
import { MACHINE_LOCK_SECONDS } from './install';

/**
 * `<first>/token`: the token with which nodes join. Made on the first server from the kernel's random numbers, once. It is never made where a
 * cluster already runs elsewhere: the first server would begin a second one.
 */
export function tokenTask(input: ServerInput, after: readonly string[]): Task {
  const { first, servers } = layoutOf(input);
  const { registrationPort, configFolder, dataFolder } = factsOf(input);
  const id = `${first.address}/token`;
  const props = {
    cluster: input.name,
    id,
    doing: 'making the join token',
    lockSeconds: MACHINE_LOCK_SECONDS,
  };
  const others = servers.filter((node) => node !== first).map(internalAddress);
  const urls = others.map((address) => `https://${urlHost(address)}:${registrationPort}/ping`);
  const refusal = `answers already, but ${first.address} has no part in a cluster. It would begin a second one: put it behind the servers that exist`;
  const body = `secret_config=${configFolder}/config.yaml.d/50-kindred.yaml
if [ ! -s "$state/token" ] && [ -s "$secret_config" ]; then
  awk '$1 == "token:" { gsub(/"/, "", $2); printf "%s", $2 }' "$secret_config" | put "$state/token" 600
fi
if [ ! -s "$state/token" ] && [ -s ${sh(`${dataFolder}/server/token`)} ] && [ -f "$state/installation" ]; then
  tr -d '\\n' <${sh(`${dataFolder}/server/token`)} | put "$state/token" 600
fi
if [ ! -s "$state/token" ]; then
  for url in ${urls.length === 0 ? "''" : urls.map(sh).join(' ')}; do
    if [ -z "$url" ] || ! have curl; then continue; fi
    if [ "$(curl -sk --max-time 5 "$url" </dev/null 2>>"$log" 3>&- | tr -d '[:space:]')" = pong ]; then
      die ClusterExists "$url "${sh(refusal)}
    fi
  done
  changed=true
  # 256 bits, in the characters that every configuration file bears.
  dd if=/dev/urandom bs=32 count=1 2>/dev/null | od -An -v -tx1 | tr -d ' \\n' | put "$state/token" 600
fi
token=$(cat "$state/token")
if [ "\${#token}" -lt 32 ]; then
  rm -f "$state/token"
  broken Failed "the join token in $state/token was too short and has been deleted; run again"
fi
give token "$token"
finish`;
  return {
    id,
    description: `Makes the token with which nodes join ${input.name}`,
    machine: machineOf(input, first),
    after,
    apply: script(props, [BROKEN, body]),
    outputs: ['token'],
    timeoutSeconds: 2 * MACHINE_LOCK_SECONDS,
  };
}
