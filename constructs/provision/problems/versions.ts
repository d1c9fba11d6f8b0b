import type { Problem } from '../../kube/errors';
import type { ClusterInput } from '../cluster-input';

interface Version {
  readonly minor: number;
  /** What orders versions: minor, patch, candidate or final, revision. */
  readonly order: readonly number[];
}

/** Marks of the distributions' own versions of Kubernetes. */
const MARKS = { rke: '-rancher', rke2: '+rke2r', k3s: '+k3s' } as const;

const PATTERN = /^v1[.]([0-9]+)[.]([0-9]+)(?:-rc([0-9]+))?(?:-rancher([0-9]+)-([0-9]+)|[+](?:rke2r|k3s)([0-9]+))$/;

function parse(version: string): Version | undefined {
  const match = PATTERN.exec(version);
  if (match === null) return undefined;
  const [minor = 0, patch = 0, candidate = Infinity, ...revision] = match
    .slice(1)
    .map((part: string | undefined) => (part === undefined ? undefined : Number(part)));
  return { minor, order: [minor, patch, candidate, ...revision.map((number) => number ?? 0)] };
}

function compare(a: Version, b: Version): number {
  const at = a.order.findIndex((number, i) => number !== b.order[i]);
  return at === -1 ? 0 : Math.sign((a.order[at] ?? 0) - (b.order[at] ?? 0));
}

/** What is wrong with the version, by itself and as the next one after what is installed. */
export function versionProblems(input: ClusterInput, previous?: ClusterInput): readonly Problem[] {
  const { distribution, version } = input;
  const wanted = parse(version);
  if (wanted === undefined || !version.includes(MARKS[distribution])) {
    return [
      {
        path: 'version',
        message: `"${version}" is no version of ${distribution}, which have "${MARKS[distribution]}" in them`,
      },
    ];
  }
  const installed = previous === undefined ? undefined : parse(previous.version);
  if (previous === undefined || installed === undefined || previous.distribution !== distribution) return [];
  const message = stepProblem(installed, wanted, previous.version);
  return message === undefined ? [] : [{ path: 'version', message }];
}

/** Source: the version skew policy of Kubernetes: control planes are upgraded one minor version at a time, and never back. */
function stepProblem(installed: Version, wanted: Version, name: string): string | undefined {
  if (compare(wanted, installed) < 0) {
    return `is older than ${name}, which is installed: a cluster does not go back. Restore a snapshot of then instead`;
  }
  if (wanted.minor <= installed.minor + 1) return undefined;
  return `skips a minor version: ${name} is installed. Go to a v1.${installed.minor + 1} first`;
}
