import type { z } from 'zod';
import type { Problem } from '../../kube/errors';
import { nameProblem } from '../../kube/names';
import { k3sOptions, rke2Options, rkeOptions } from '../../kinds/cluster-options';
import { nodes } from '../../kinds/cluster-node';
import type { ClusterInput } from '../cluster-input';

const OPTIONS = { rke: rkeOptions, rke2: rke2Options, k3s: k3sOptions };

/** What the schemas refuse: what they admit is safe in scripts. For inputs that come from elsewhere than a Cluster. */
export function schemaProblems(input: ClusterInput): readonly Problem[] {
  const name = nameProblem(input.name, { format: 'dns-subdomain', maxLength: 63 });
  return [
    ...(name === undefined ? [] : [{ path: 'name', message: name }]),
    ...issues(nodes.safeParse(input.nodes), 'nodes'),
    ...issues(OPTIONS[input.distribution].safeParse(input.options), input.distribution),
  ];
}

function issues(result: z.ZodSafeParseResult<unknown>, root: string): Problem[] {
  if (result.success) return [];
  return result.error.issues.map(({ path, message }) => ({
    path: path.reduce<string>((at, key) => (typeof key === 'number' ? `${at}[${key}]` : `${at}.${String(key)}`), root),
    message,
  }));
}
