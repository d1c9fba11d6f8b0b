import { machineOf } from '../cluster/cluster-input';
import { FAIL_FUNCTION, WAIT_FUNCTION } from '../shell/functions';
import { buildScript, shellQuote } from '../shell/script';
import type { Task } from '../task/task';
import { distributionInfo, type Rke2K3sInput } from './distribution';
import { MACHINE_LOCK_SECONDS } from './install';
import { kubectlFunctions } from './kubectl';
import { internalAddress, layoutOf, urlHost } from './layout';

/**
 * `<first>/token`: the token with which nodes join, created once on the first server from the kernel's random
 * numbers. If there is none yet and another server already runs a cluster, the task fails: the first server
 * would start a second cluster.
 */
export function tokenTask(input: Rke2K3sInput, after: readonly string[]): Task {
  const { first, servers } = layoutOf(input);
  const { registrationPort, configFolder, dataFolder } = distributionInfo(input);
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
if [ ! -s "$state/token" ] && [ -s ${shellQuote(`${dataFolder}/server/token`)} ] && [ -f "$state/installation" ]; then
  tr -d '\\n' <${shellQuote(`${dataFolder}/server/token`)} | put "$state/token" 600
fi
if [ ! -s "$state/token" ]; then
  for url in ${urls.length === 0 ? "''" : urls.map(shellQuote).join(' ')}; do
    if [ -z "$url" ] || ! have curl; then continue; fi
    if [ "$(curl -sk --max-time 5 "$url" </dev/null 2>>"$log" 3>&- | tr -d '[:space:]')" = pong ]; then
      die ClusterExists "$url "${shellQuote(refusal)}
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
    machine: machineOf(first, input.sshKey),
    after,
    apply: buildScript(props, [FAIL_FUNCTION, body]),
    outputs: ['token'],
    timeoutSeconds: 2 * MACHINE_LOCK_SECONDS,
  };
}

/**
 * `kubeconfig`: the administrator's, with the fixed address, and with cluster, user and context named after
 * the cluster. Read again with each version, since a restart renews its certificate.
 */
export function kubeconfigTask(input: Rke2K3sInput, after: readonly string[]): Task {
  const { admin } = layoutOf(input);
  const { kubeconfig } = distributionInfo(input);
  const host = input.options.registrationAddress ?? admin.address;
  const server = `https://${urlHost(host)}:6443`;
  const body = `# ${input.version}
if ! wait_for 300 api_answers; then broken NoApi "the API on this machine does not answer"; fi
text=$(awk -v server=${shellQuote(server)} -v name=${shellQuote(input.name)} '
  /^ *server: / { sub(/server: .*/, "server: " server); servers++ }
  /^ *(- )?(name|cluster|user|current-context): default$/ { sub(/default$/, name); names++ }
  { print }
  END { exit !(servers == 1 && names == 6) }' ${shellQuote(kubeconfig)}) ||
  die Failed ${shellQuote(`${kubeconfig} is not as the distribution writes it: one server, and default as the name of cluster, user and context`)}
give kubeconfig "$text
"
finish`;
  return {
    id: 'kubeconfig',
    description: `Reads the kubeconfig of ${input.name}`,
    machine: machineOf(admin, input.sshKey),
    after,
    apply: buildScript({ cluster: input.name, id: 'kubeconfig', doing: 'reading the kubeconfig' }, [
      FAIL_FUNCTION,
      WAIT_FUNCTION,
      kubectlFunctions(input),
      body,
    ]),
    outputs: ['kubeconfig'],
    timeoutSeconds: 420,
  };
}
