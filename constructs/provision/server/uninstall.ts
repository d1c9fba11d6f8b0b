import type { Node } from '../cluster-input';
import { sh } from '../shell/quote';
import { script } from '../shell/script';
import { BROKEN } from '../shell/wait';
import { SERVICE } from '../shell/service';
import { factsOf } from './facts';
import type { ServerInput } from './facts';
import { kubectl } from './kubectl';
import { isServer } from './layout';
import { leaveFirst, removalFacts } from './members';

/** How long an uninstaller may take, in seconds. */
const UNINSTALL_SECONDS = 600;

/**
 * Takes the distribution off a machine, and what we know of it. What is half gone is taken the rest of the way; a machine that has nothing
 * of ours is left alone.
 */
export function uninstallScript(input: ServerInput, node: Node): string {
  const { label, program, service, configFolder, dataFolder, uninstallers, dataVariable } = factsOf(input);
  const kind = isServer(node) ? 'server' : 'agent';
  const props = {
    cluster: input.name,
    id: `${node.address}/install`,
    doing: `removing ${label} from ${node.address}`,
    stdin: removalFacts,
    lockSeconds: UNINSTALL_SECONDS + 60,
  };
  return script(props, [
    BROKEN,
    SERVICE,
    kubectl(input),
    `program=${program}
unit=${service[kind]}
if [ ! -f "$state/installation" ]; then
  note "nothing of the cluster is installed on this machine"
  rm -rf "$state/marker" "$state/token" "$state/installer" "$state/unchangeable" "$state/installing" "$state/turn" "$state/joined" "$state/standing"
  finish
fi
changed=true`,
    leaveFirst(input, node),
    `for uninstaller in ${uninstallers[kind].join(' ')}; do
  if have "$uninstaller"; then
    # It may end with an error because half of what it takes away is gone already; what counts is what is left.
    run timeout ${UNINSTALL_SECONDS} env ${dataVariable}=${sh(dataFolder)} "$uninstaller" || note "$uninstaller ended with an error"
    break
  fi
done
if active || starting; then detached systemctl stop "$unit" || broken UninstallFailed "systemctl stop $unit fails"; fi
run systemctl disable "$unit" || :
if active || starting; then broken UninstallFailed "$unit still runs on this machine"; fi`,
    `for left in ${configFolder} ${['server', 'agent', 'bin', 'data', 'storage'].map((name) => sh(`${dataFolder}/${name}`)).join(' ')}; do
  run rm -rf "$left" || broken UninstallFailed "$left cannot be deleted"
done
for left in ${['/usr/local/bin', '/usr/bin', '/opt/rke2/bin'].map((folder) => `${folder}/${program}`).join(' ')}; do run rm -f "$left"; done
log=/dev/null
exec >/dev/null 2>&1
# The lock stays: someone may be waiting for it.
rm -rf "$state/log" "$state/marker" "$state/token" "$state/installer" "$state/unchangeable" "$state/installing" "$state/turn" "$state/joined" "$state/standing"
rm -f "$state/installation"
finish`,
  ]);
}
