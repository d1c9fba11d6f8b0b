/** What cannot change about an installed machine: the machine records it, and its preflight compares. */

import { immutableOptions, type Node } from '../cluster/cluster-input';
import { shellQuote } from '../shell/script';
import { distributionInfo, type Rke2K3sInput } from './distribution';
import { isServer } from './layout';

/** Records the immutable settings on the machine, once: just before the service first creates data. */
export function recordImmutableSettings(input: Rke2K3sInput, node: Node): string {
  return `if [ ! -s "$state/unchangeable" ]; then
  printf '%s\\n' ${shellQuote(linesOf(immutableSettings(input, node)))} | put "$state/unchangeable" 600
fi`;
}

/**
 * For a preflight: calls `problem` for each immutable setting that would change. Settings that were not
 * recorded are ignored.
 */
export function checkImmutableSettings(input: Rke2K3sInput, node: Node): string {
  const { program } = distributionInfo(input);
  const ofNode = 'Put it back, or remove the machine from the cluster and then add it again';
  const ofCluster = 'A cluster has it for life: put it back, or make a new cluster and move over';
  return `if [ -s "$state/installation" ]; then
  runs=$(cut -d ' ' -f 1 "$state/installation")
  if [ "$runs" != ${program} ]; then
    problem distribution "is to be ${program}, but $runs is installed. ${ofCluster}"
  elif [ -s "$state/unchangeable" ]; then
    while IFS='=' read -r name now; do
      was=$(sed -n "s/^$name=//p" "$state/unchangeable")
      if [ "$was" = "$now" ] || ! grep -q "^$name=" "$state/unchangeable"; then continue; fi
      case $name in
        roles | internalAddress | hostnameOverride) advice='${ofNode}' ;;
        *) advice='${ofCluster}' ;;
      esac
      problem "$name" "is to change from \${was:-nothing} to \${now:-nothing}. $advice"
    done <<'UNCHANGEABLE'
${linesOf(immutableSettings(input, node))}
UNCHANGEABLE
  fi
fi`;
}

/**
 * The settings with which a machine was installed and that cannot change, stored in `$state/unchangeable` as
 * lines of `name=value`. So the machine itself rejects an impossible change before anything is changed, even
 * if the runner of the plan has no record of the earlier cluster.
 */
function immutableSettings(input: Rke2K3sInput, node: Node): ReadonlyMap<string, string> {
  const parts = (['controlplane', 'etcd'] as const).filter((role) => node.roles.includes(role));
  return new Map([
    ...(isServer(node) ? immutableOptions(input) : []),
    // The role worker is only labels and taints; the other two decide what runs on the machine.
    ['roles', parts.join(',')],
    ['internalAddress', node.internalAddress ?? node.address],
    ['hostnameOverride', node.hostnameOverride ?? ''],
  ]);
}

const linesOf = (values: ReadonlyMap<string, string>): string =>
  [...values].map(([name, value]) => `${name}=${value}`).join('\n');

/**
 * For a preflight: rejects a downgrade, and an upgrade that skips a minor version. Versions in another format
 * than the distributions' are ignored.
 * Source: the version skew policy of Kubernetes: control planes are upgraded one minor version at a time, and
 * never back.
 */
export function checkVersionSkew(input: Rke2K3sInput): string {
  const { program, label } = distributionInfo(input);
  return `if [ -s "$state/installation" ] && have ${program}; then
  installed=$(${program} --version </dev/null 2>>"$log" 3>&- | awk 'NR == 1 { print $3 }') || installed=''
  step=$(printf '%s\\n' "$installed" ${shellQuote(input.version)} | awk -v mark='[+](rke2r|k3s)' '
    # v1.33.4-rc1+k3s2: 33, 4, 1, 2; a final version comes after its candidates.
    NF == 1 && $1 ~ "^v1[.][0-9]+[.][0-9]+(-rc[0-9]+)?" mark "[0-9]+$" {
      n++
      split(substr($1, 2), number, /[.+-]/)
      revision = $1; sub("^.*" mark, "", revision)
      candidate = 999999
      if ($1 ~ /-rc/) { candidate = $1; sub(/^.*-rc/, "", candidate); sub(/[+].*$/, "", candidate) }
      at[n, 1] = number[2]; at[n, 2] = number[3]; at[n, 3] = candidate; at[n, 4] = revision
    }
    END {
      if (n < 2) exit
      for (i = 1; i <= 4; i++) {
        if (at[2, i] + 0 > at[1, i] + 0) break
        if (at[2, i] + 0 < at[1, i] + 0) { print "back"; exit }
      }
      if (at[2, 1] > at[1, 1] + 1) print "v1." at[1, 1] + 1
    }')
  case $step in
    '') ;;
    back) problem version "${input.version} is older than $installed, which is installed: a cluster does not go back. Set $installed or a newer one; what was before is in a snapshot of then" ;;
    *) problem version "${input.version} skips a minor version: ${label} $installed is installed. Go to a $step first" ;;
  esac
fi`;
}
