import { sh } from '../shell/quote';
import { script } from '../shell/script';
import { BROKEN, WAIT } from '../shell/wait';
import type { Task } from '../task';
import { factsOf } from './facts';
import type { ServerInput } from './facts';
import { kubectl } from './kubectl';
import { layoutOf, machineOf, urlHost } from './layout';

/**
 * `kubeconfig`: the administrator's, at the address that stays, with cluster, user and context named after the cluster. Read anew with each
 * version, since a restart renews its certificate.
 */
export function kubeconfigTask(input: ServerInput, after: readonly string[]): Task {
  const { admin } = layoutOf(input);
  const { kubeconfig } = factsOf(input);
  const host = input.options.registrationAddress ?? admin.address;
  const server = `https://${urlHost(host)}:6443`;
  const body = `# ${input.version}
if ! wait_for 300 api_answers; then broken NoApi "the API on this machine does not answer"; fi
text=$(awk -v server=${sh(server)} -v name=${sh(input.name)} '
  /^ *server: / { sub(/server: .*/, "server: " server); servers++ }
  /^ *(- )?(name|cluster|user|current-context): default$/ { sub(/default$/, name); names++ }
  { print }
  END { exit !(servers == 1 && names == 6) }' ${sh(kubeconfig)}) ||
  die Failed ${sh(`${kubeconfig} is not as the distribution writes it: one server, and default as the name of cluster, user and context`)}
give kubeconfig "$text
"
finish`;
  return {
    id: 'kubeconfig',
    description: `Reads the kubeconfig of ${input.name}`,
    machine: machineOf(input, admin),
    after,
    apply: script({ cluster: input.name, id: 'kubeconfig', doing: 'reading the kubeconfig' }, [
      BROKEN,
      WAIT,
      kubectl(input),
      body,
    ]),
    outputs: ['kubeconfig'],
    timeoutSeconds: 420,
  };
}
