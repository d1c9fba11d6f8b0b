import { setTimeout as delay } from 'node:timers/promises';
import type { Condition, KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient } from '../../operator/client/api-client';
import { ApiError } from '../../operator/client/errors';
import { CliError } from '../errors';

const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

const patienceMs = 30_000;
const lookEveryMs = 50;

interface CrdLike extends KubeObject {
  readonly spec?: {
    readonly group: string;
    readonly scope: ResourceType['scope'];
    readonly names: { readonly kind: string; readonly plural: string };
    readonly versions: readonly { readonly name: string; readonly served: boolean }[];
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

/** Whether an object is a CRD. */
export function isCrd({ kind }: KubeObject): boolean {
  return kind === CRDS.kind;
}

/**
 * Waits until the server serves what a CRD defines. `Established` alone is not enough: the server may take a moment more.
 *
 * @throws CliError when the server does not accept the CRD's names, or not in time
 */
export async function waitUntilServed(client: ApiClient, name: string, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const crd: CrdLike | undefined = await client.get(CRDS, { name }, { signal });
    const problem = problemOf(crd) ?? (await unserved(client, crd, signal));
    if (problem === undefined) return;
    if (Date.now() > deadline) {
      throw new CliError(
        `CRD ${name} is not served after ${patienceMs / 1000} s: ${problem}. Look at: kubectl describe crd ${name}`,
      );
    }
    await delay(lookEveryMs, undefined, { signal });
  }
}

function problemOf(crd: CrdLike | undefined): string | undefined {
  if (crd === undefined) return 'it is gone';
  const conditions = crd.status?.conditions ?? [];
  const refused = conditions.find(({ type, status }) => type === 'NamesAccepted' && status === 'False');
  if (refused !== undefined) return `its names are taken: ${refused.message}`;
  const established = conditions.find(({ type }) => type === 'Established');
  return established?.status === 'True' ? undefined : (established?.message ?? 'the server has not looked at it yet');
}

async function unserved(client: ApiClient, crd: CrdLike | undefined, signal: AbortSignal): Promise<string | undefined> {
  const spec = crd?.spec;
  if (spec === undefined) return undefined;
  const { group, scope, names } = spec;
  for (const version of spec.versions.filter(({ served }) => served)) {
    const type = { apiVersion: `${group}/${version.name}`, kind: names.kind, plural: names.plural, scope };
    try {
      await client.list(type, { limit: 1, signal });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return `${type.apiVersion} ${type.plural} answers 404`;
      throw error;
    }
  }
  return undefined;
}
