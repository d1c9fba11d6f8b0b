import { shellQuote } from '../shell/script';
import { distributionInfo, type Rke2K3sInput } from './distribution';
import { NODE_LABEL, nodeLabelValue } from './config';
import type { Node } from '../cluster/cluster-input';

/**
 * kubectl on a server: `kube ARGS...`, for at most `kube_limit` seconds. Callers assign its output to a
 * variable first: inside the words of a test or a case, the shell ignores its failure, and an API that does
 * not respond would count as a negative result.
 */
export function kubectlFunctions(input: Rke2K3sInput): string {
  const { dataFolder, kubeconfig, program } = distributionInfo(input);
  const executable = input.distribution === 'rke2' ? `${dataFolder}/bin/kubectl` : program;
  const words = input.distribution === 'rke2' ? '"$kubectl"' : '"$kubectl" kubectl';
  return `kubectl=${shellQuote(executable)}
kubeconfig=${shellQuote(kubeconfig)}
kube_limit=60
has_cluster() { have "$kubectl" && [ -s "$kubeconfig" ]; }
kube() { timeout "$kube_limit" ${words} --kubeconfig "$kubeconfig" "$@" </dev/null 2>>"$log" 3>&- 9>&-; }
api_answers() { has_cluster && kube get --raw=/readyz >>"$log"; }`;
}

/**
 * Finds a node: `find_node` sets `node`, to nothing when there is none, and fails when the API does not
 * respond.
 */
export function findNodeFunctions(node: Node): string {
  const selector = shellQuote(`${NODE_LABEL}=${nodeLabelValue(node)}`);
  return `find_node() {
  node=$(kube get nodes -l ${selector} -o 'jsonpath={.items[*].metadata.name}') || return 1
  case $node in *' '*) die Failed "several nodes have the label ${NODE_LABEL}=${nodeLabelValue(node)}: $node. Delete those that are no more" ;; esac
}
annotation() { kube get node "$node" -o "jsonpath={.metadata.annotations.kindred\\\\.dev/$1}"; }
annotate() { kube annotate node "$node" --overwrite "$@" >>"$log"; }`;
}
