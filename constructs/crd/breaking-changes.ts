import type { KubeObject } from '../core/kube-object';
import type { BreakingChange } from './breaking-change';
import { schemaChanges } from './breaking-schema-changes';

/**
 * What a new CRD takes away from those who use the old one: objects that were valid and are no longer, fields and versions that were
 * there, names and paths under which it was reached.
 *
 * Source: Kubernetes' "Changing the API". Bounds, patterns and rules that became looser are no such change; a default that changed is.
 *
 * @param before a CRD (`apiextensions.k8s.io/v1`) of the last release
 * @param after the CRD that takes its place
 */
export function breakingChanges(before: KubeObject, after: KubeObject): readonly BreakingChange[] {
  const [old, now] = [before.spec as CrdSpec, after.spec as CrdSpec];
  const changes: BreakingChange[] = [];
  const same = (path: string, a: string | undefined, b: string | undefined): void => {
    if (a !== b) changes.push({ path, message: `was ${String(a)}, is ${String(b)}` });
  };
  same('spec.group', old.group, now.group);
  same('spec.scope', old.scope, now.scope);
  same('spec.names.kind', old.names.kind, now.names.kind);
  same('spec.names.plural', old.names.plural, now.names.plural);
  same('spec.names.singular', old.names.singular, now.names.singular);
  for (const name of old.names.shortNames ?? []) {
    if (now.names.shortNames?.includes(name) !== true)
      changes.push({ path: 'spec.names.shortNames', message: `"${name}" is gone` });
  }
  for (const version of old.versions) changes.push(...versionChanges(version, now.versions));
  return changes;
}

interface CrdSpec {
  readonly group: string;
  readonly scope: string;
  readonly names: {
    readonly kind: string;
    readonly plural: string;
    readonly singular?: string;
    readonly shortNames?: readonly string[];
  };
  readonly versions: readonly CrdVersion[];
}

interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly schema: { readonly openAPIV3Schema: Readonly<Record<string, unknown>> };
  readonly subresources?: { readonly status?: object; readonly scale?: Readonly<Record<string, string>> };
}

function versionChanges(old: CrdVersion, versions: readonly CrdVersion[]): BreakingChange[] {
  const now = versions.find(({ name }) => name === old.name);
  if (now === undefined) {
    return [
      {
        path: old.name,
        message: 'the version is gone; keep it, at least with served: false, while objects are stored in it',
      },
    ];
  }
  const changes: BreakingChange[] = [];
  if (old.served && !now.served) changes.push({ path: old.name, message: 'the version is no longer served' });
  if (old.subresources?.status !== undefined && now.subresources?.status === undefined) {
    changes.push({ path: `${old.name} subresources.status`, message: 'is gone' });
  }
  const [scale, nowScale] = [old.subresources?.scale, now.subresources?.scale];
  for (const key of Object.keys(scale ?? {})) {
    if (scale?.[key] === nowScale?.[key]) continue;
    changes.push({
      path: `${old.name} subresources.scale.${key}`,
      message: `was ${String(scale?.[key])}, is ${nowScale?.[key] ?? 'gone'}`,
    });
  }
  for (const change of schemaChanges(old.schema.openAPIV3Schema, now.schema.openAPIV3Schema, '')) {
    changes.push({ path: `${old.name} ${change.path === '' ? '(root)' : change.path}`, message: change.message });
  }
  return changes;
}
