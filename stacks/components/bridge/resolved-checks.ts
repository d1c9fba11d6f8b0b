import * as pulumi from '@pulumi/pulumi';
import type { ApiObject } from 'cdk8s';
import { InvalidObjectError, type Problem } from '../../../constructs/kube/errors';
import type { Manifest } from './manifest';

/** Finds what is wrong with an object whose Outputs are all known. */
export type ResolvedCheck = (manifest: Manifest) => readonly Problem[];

const checks = new WeakMap<ApiObject, ResolvedCheck>();

/** Has an object checked again when its Outputs are known, before it is registered. */
export function onceResolved(construct: ApiObject, check: ResolvedCheck): void {
  checks.set(construct, check);
}

/**
 * What the registration of an object is to wait for so that it was checked: fails with what is wrong, and is otherwise nothing to depend on.
 * Undefined where there is nothing to check.
 *
 * @param resource name of the object's resource, for errors: the object's own name may be a secret
 */
export function checkOf(
  construct: ApiObject,
  resource: string,
  inputs: pulumi.Inputs,
): pulumi.Output<pulumi.Resource[]> | undefined {
  const check = checks.get(construct);
  if (check === undefined) return undefined;
  const resolved = pulumi.output<object>(inputs);
  const secret = pulumi.isSecret(resolved);
  return resolved.apply(async (manifest) => {
    const problems = check(manifest as Manifest);
    if (problems.length === 0) return [];
    const shown = (await secret) ? problems.map(({ path: at }) => ({ path: at, message: HIDDEN })) : problems;
    throw new InvalidObjectError(`${construct.kind} ${resource}`, shown);
  });
}

const HIDDEN = 'is invalid; why is not said, because the object holds secrets';
