import type { LimitName } from '../../../bench/results';
import { HelloApp } from '../../../constructs/kinds';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { expectedChildren } from '../../../testing';

/** A request that is ready to be sent. */
export interface Prepared {
  readonly method: 'POST' | 'PATCH';
  readonly path: string;
  readonly type: string;
  readonly body: string;
}

/** The two writes that an object needs. */
export type Pair = readonly [create: Prepared, status: Prepared];

const query = 'fieldManager=kindred&fieldValidation=Strict';

/**
 * The two requests that bring an object's Deployment and its status about.
 *
 * @param status what the operator writes for such an object
 * @param how the Deployment is made by POST, as our operator does (`same`), or by server-side apply
 */
export function pairOf(owner: KubeObject, status: object, how: LimitName): Pair {
  const { name, namespace = '', uid } = owner.metadata;
  const [child] = expectedChildren(HelloApp, owner);
  if (child === undefined) throw new Error('a HelloApp renders nothing');
  const { apiVersion, kind, type } = HelloApp;
  const own = { ...status, selector: `app=${name}` };
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`;
  const create =
    how === 'apply'
      ? applied(`${deployments}/${name}`, child.object)
      : {
          method: 'POST' as const,
          path: `${deployments}?${query}`,
          type: 'application/json',
          body: json(child.object),
        };
  const statusPath = `/apis/${apiVersion}/namespaces/${namespace}/${type.plural}/${name}/status`;
  return [create, applied(statusPath, { apiVersion, kind, metadata: { name, namespace, uid }, status: own })];
}

function applied(path: string, body: object): Prepared {
  const type = 'application/apply-patch+yaml';
  return { method: 'PATCH', path: `${path}?${query}&force=true`, type, body: json(body) };
}

function json(body: object): string {
  return JSON.stringify(body);
}
