import type { Condition, KubeObject } from '../constructs/kube/kube-object';
import { owned, type ResourceType } from '../constructs/kube/resource-type';
import { withDefaults } from '../constructs/kind/render';
import { HelloApp } from '../constructs/kinds';
import { readPagedList } from '../operator/informer/initial-list';
import type { ApiClient } from '../operator/client/api-client';
import { imageOf } from './edits';

/** How many problems an error lists; further ones are only counted. */
const toldFindings = 5;

/**
 * Checks that an operator has reconciled the created objects correctly: the number of status writes says
 * nothing about their content. It reads everything from the server, so call it outside of measurements.
 *
 * @param who the operator's name, for the error
 * @param made the created objects, all in one namespace
 * @throws Error that names the first objects with problems, and the problems
 */
export async function assertConverged(
  client: Pick<ApiClient, 'list'>,
  who: string,
  made: readonly KubeObject[],
): Promise<void> {
  const { namespace = '' } = made[0]?.metadata ?? {};
  const apps = await all(client, HelloApp.type, namespace);
  const deployments = await all(client, owned.Deployment, namespace);
  const findings = convergenceProblems(made.length, { apps, deployments });
  if (findings.length === 0) return;
  const more = findings.length > toldFindings ? [`and ${String(findings.length - toldFindings)} more`] : [];
  const told = [...findings.slice(0, toldFindings), ...more].join('; ');
  throw new Error(`${who}: the work on ${String(made.length)} objects in ${namespace} is not done: ${told}`);
}

/** The objects in a namespace. */
export interface NamespaceObjects {
  readonly apps: readonly KubeObject[];
  readonly deployments: readonly KubeObject[];
}

/**
 * Problems with the HelloApps of a namespace. Each must have its Deployment and a status that is correct, and
 * there must be no other Deployments.
 *
 * @param made how many HelloApps there must be
 * @returns a line for each object with problems; empty when all are correct
 */
export function convergenceProblems(made: number, { apps, deployments }: NamespaceObjects): readonly string[] {
  const left = new Map(deployments.map((deployment) => [deployment.metadata.name, deployment]));
  const lines = apps.flatMap((app) => {
    const { name } = app.metadata;
    const deployment = left.get(name);
    left.delete(name);
    const wrong = [...wrongChild(app, deployment), ...wrongStatus(app, deployment)];
    return wrong.length === 0 ? [] : [`${name}: ${wrong.join(', ')}`];
  });
  const strays = [...left.keys()].map((name) => `Deployment ${name}: there is no HelloApp of this name`);
  const lost = apps.length === made ? [] : [`there are ${String(apps.length)} HelloApps instead of ${String(made)}`];
  return [...lost, ...lines, ...strays];
}

interface Status {
  readonly replicas?: number;
  readonly readyReplicas?: number;
  readonly selector?: string;
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
}

interface Workload {
  readonly spec?: { readonly replicas?: number };
  readonly status?: Pick<Status, 'replicas' | 'readyReplicas'>;
}

function wrongChild(app: KubeObject, deployment: KubeObject | undefined): readonly string[] {
  if (deployment === undefined) return ['no Deployment'];
  const { image, size } = withDefaults(HelloApp, app).spec;
  const controller = deployment.metadata.ownerReferences?.find((reference) => reference.controller === true);
  return [
    ...(controller !== undefined && controller.uid === app.metadata.uid ? [] : ['its Deployment is not its own']),
    ...differs('image', imageOf(deployment), image),
    ...differs('replicas', (deployment as Workload).spec?.replicas, size),
  ];
}

/**
 * Checks the fields that our operator and the twins write. `Reconciling` exists only while `Ready` is False,
 * as in kstatus.
 */
function wrongStatus(app: KubeObject, deployment: KubeObject | undefined): readonly string[] {
  const { name, generation } = app.metadata;
  const { status = {} } = app as { readonly status?: Status };
  const pods = (deployment as Workload | undefined)?.status;
  const ready = pods?.readyReplicas ?? 0;
  const isReady = ready >= withDefaults(HelloApp, app).spec.size;
  const condition = (type: string): Condition | undefined => status.conditions?.find((each) => each.type === type);
  return [
    ...differs('status.observedGeneration', status.observedGeneration, generation),
    ...differs('status.replicas', status.replicas, pods?.replicas ?? 0),
    ...differs('status.readyReplicas', status.readyReplicas, ready),
    ...differs('status.selector', status.selector, `app=${name}`),
    ...differs('Ready', condition('Ready')?.status, isReady ? 'True' : 'False'),
    ...differs('observedGeneration of Ready', condition('Ready')?.observedGeneration, generation),
    ...differs('Reconciling', condition('Reconciling')?.status, isReady ? undefined : 'True'),
  ];
}

function differs<T>(what: string, is: T | undefined, wanted: T | undefined): readonly string[] {
  return is === wanted ? [] : [`${what} ${String(is)} instead of ${String(wanted)}`];
}

const pageSize = 500;

async function all(
  client: Pick<ApiClient, 'list'>,
  type: ResourceType,
  namespace: string,
): Promise<readonly KubeObject[]> {
  const objects: KubeObject[] = [];
  const take = (object: KubeObject): void => void objects.push(object);
  await readPagedList(client, type, { namespace, limit: pageSize }, take, () => void objects.splice(0));
  return objects;
}
