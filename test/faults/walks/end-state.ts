import type { AnyKind, CommonStatus, ObservedChildren } from '../../../constructs/kind/kind';
import { sharedKeys, withDefaults } from '../../../constructs/kind/render';
import { OWNER_UID_ANNOTATION, SHARED_KEY_ANNOTATION, controllerReference } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned, typeKey, type ResourceType, type WorkloadObject } from '../../../constructs/kube/resource-type';
import type { ApiClient } from '../../../operator/client/api-client';
import { expectedChildren, expectedShared, type ExpectedChild } from '../../../testing';
import { findCondition, hasCondition } from '../../support/assertions';
import { operatorKinds } from '../../support/test-env';
import { ClusterView, verifyChild, firstDifference, type ChildVerdict } from './cluster-view';
import type { LiveChild } from './drift';
import type { DesiredState } from './user';

/** What an owner ought to have, and why it may lack some of it. */
interface OwnerCheck {
  readonly kind: AnyKind;
  readonly owner: KubeObject;
  /** Children that are its to report on, as they stand. */
  readonly live: KubeObject[];
  /** Reasons for which its status must not be Ready, by what stands in the way. */
  readonly obstacles: Set<string>;
}

/** What an end state lacks. */
export interface EndState {
  readonly problems: readonly string[];
  readonly view: ClusterView;
}

/**
 * Compares a namespace with what its last specs describe: the specs are those that the server took last; the children of each owner stand, or
 * its status says why not; nothing of ours stands besides.
 */
export async function endState(client: ApiClient, namespace: string, ledger: DesiredState): Promise<EndState> {
  const view = await ClusterView.load(client, namespace);
  const problems = [...specProblems(view, ledger)];
  const expected = new Set<string>();
  const findings: OwnerCheck[] = [];
  for (const kind of operatorKinds) {
    const owners = view.ownersOf(kind).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const ofKind = owners.map((owner): OwnerCheck => ({ kind, owner, live: [], obstacles: new Set() }));
    for (const finding of ofKind) problems.push(...(await ownChildren(client, view, finding, expected)));
    problems.push(...(await sharedChildren(client, view, kind, ofKind, expected)));
    findings.push(...ofKind);
  }
  problems.push(...findings.flatMap(statusProblems));
  problems.push(...strayProblems(view, findings, expected, ledger));
  return { problems, view };
}

/** The owners stand as users want them: none lost, none that was deleted, no spec but the last. */
function specProblems(view: ClusterView, ledger: DesiredState): readonly string[] {
  const unwanted = view
    .allOwners()
    .filter(({ kind, metadata: { name } }) => ledger.find(kind, name) === undefined)
    .map((owner) => `${titleOf(owner)} was deleted and still stands`);
  const lost = ledger.all().flatMap((wanted) => {
    const live = view.allOwners().find(({ metadata }) => metadata.uid === wanted.metadata.uid);
    if (live === undefined) return [`${titleOf(wanted)} is lost`];
    const path = firstDifference(wanted['spec'], live['spec'], '.spec');
    return path === undefined ? [] : [`${titleOf(wanted)} has another spec, ${path}`];
  });
  return [...unwanted, ...lost];
}

async function ownChildren(
  client: ApiClient,
  view: ClusterView,
  finding: OwnerCheck,
  expected: Set<string>,
): Promise<readonly string[]> {
  const { kind, owner, obstacles } = finding;
  const writers = new Set(kind.seeds.map(({ writer }) => typeKey(writer)));
  const problems: string[] = [];
  for (const child of writersLast(expectedChildren(kind, owner), writers)) {
    expected.add(idOf(child));
    const live = view.find(child.type, child.object.metadata.name);
    // What makes another write a field of a sibling waits for its siblings.
    if (live === undefined && writers.has(typeKey(child.type)) && obstacles.size > 0) continue;
    const isOurs = (object: KubeObject): boolean => isControlledBy(object, owner);
    const held = heldVerdict(child, foreignAccounts(view, kind, owner), live, isOurs);
    problems.push(...recordVerdict(finding, held ?? (await verifyChild(client, child, live, isOurs))));
  }
  return problems;
}

function writersLast(children: readonly ExpectedChild[], writers: ReadonlySet<string>): readonly ExpectedChild[] {
  const isWriter = ({ type }: ExpectedChild): boolean => writers.has(typeKey(type));
  return [...children.filter((child) => !isWriter(child)), ...children.filter(isWriter)];
}

async function sharedChildren(
  client: ApiClient,
  view: ClusterView,
  kind: AnyKind,
  findings: readonly OwnerCheck[],
  expected: Set<string>,
): Promise<readonly string[]> {
  const byKey = new Map<string, OwnerCheck[]>();
  for (const finding of findings) {
    for (const { group, key } of sharedKeys(kind, withDefaults(kind, finding.owner))) {
      const id = `${group.name}/${key}`;
      byKey.set(id, [...(byKey.get(id) ?? []), finding]);
    }
  }
  const problems: string[] = [];
  for (const holders of byKey.values()) {
    const sorted = [...holders].sort((a, b) => (a.owner.metadata.name < b.owner.metadata.name ? -1 : 1));
    for (const child of expectedShared(
      kind,
      sorted.map(({ owner }) => owner),
    )) {
      expected.add(idOf(child));
      const live = view.find(child.type, child.object.metadata.name);
      const isOurs = (object: KubeObject): boolean => isSharedBy(object, kind);
      const foreign = sorted.flatMap(({ owner }) => foreignAccounts(view, kind, owner));
      const verdict = heldVerdict(child, foreign, live, isOurs) ?? (await verifyChild(client, child, live, isOurs));
      problems.push(...new Set(holders.flatMap((finding) => recordVerdict(finding, verdict))));
    }
  }
  return problems;
}

/** Names of the ServiceAccounts that an owner renders, alone or with others, and that are somebody else's. */
function foreignAccounts(view: ClusterView, kind: AnyKind, owner: KubeObject): readonly string[] {
  const foreign = (children: readonly ExpectedChild[], isOurs: (live: KubeObject) => boolean): readonly string[] =>
    children
      .filter(({ type }) => typeKey(type) === typeKey(owned.ServiceAccount))
      .map(({ type, object }) => view.find(type, object.metadata.name))
      .flatMap((live) => (live === undefined || isOurs(live) ? [] : [live.metadata.name]));
  return [
    ...foreign(expectedChildren(kind, owner), (live) => isControlledBy(live, owner)),
    ...foreign(expectedShared(kind, [owner]), (live) => isSharedBy(live, kind)),
  ];
}

/** The verdict on a child that waits for its ServiceAccount. */
function heldVerdict(
  { object }: ExpectedChild,
  foreign: readonly string[],
  live: KubeObject | undefined,
  isOurs: (live: KubeObject) => boolean,
): ChildVerdict | undefined {
  const spec = JSON.stringify(object['spec'] ?? {});
  if (!foreign.some((name) => spec.includes(`"serviceAccountName":${JSON.stringify(name)}`))) return undefined;
  return { verdict: 'held', live: live !== undefined && isOurs(live) ? live : undefined };
}

/** Notes what a verdict means to an owner; @returns what is wrong about the child */
function recordVerdict({ owner, live, obstacles }: OwnerCheck, verdict: ChildVerdict): readonly string[] {
  switch (verdict.verdict) {
    case 'stands':
      live.push(verdict.live);
      return [];
    case 'taken':
      obstacles.add('ErrResourceExists');
      return [];
    case 'refused':
      obstacles.add('ErrInvalidChild');
      if (verdict.live !== undefined) live.push(verdict.live);
      return [];
    case 'held':
      if (verdict.live !== undefined) live.push(verdict.live);
      return [];
    case 'wrong':
      return [`${titleOf(owner)}: ${verdict.problem}`];
  }
}

/** What bears a sign of ours and has no business here. */
function strayProblems(
  view: ClusterView,
  findings: readonly OwnerCheck[],
  expected: ReadonlySet<string>,
  ledger: DesiredState,
): readonly string[] {
  const byUid = new Map(findings.map((finding) => [finding.owner.metadata.uid, finding]));
  return view
    .ownedObjects()
    .filter((found) => !isKept(found))
    .map(
      ({ type, object }) => `${type.kind} "${object.metadata.name}" is nobody's: ${JSON.stringify(object.metadata)}`,
    );

  function isKept(found: LiveChild): boolean {
    const { ownerReferences = [] } = found.object.metadata;
    if (ownerReferences.length === 0) return ledger.isReleased(found.object);
    const owners = ownerReferences.map((reference) => byUid.get(reference.uid));
    // The garbage collector takes it, or the reference, away.
    if (owners.includes(undefined)) return false;
    // Nothing is pruned while something else of the owner's cannot be written.
    return expected.has(idOf(found)) || owners.some((finding) => (finding?.obstacles.size ?? 0) > 0);
  }
}

function isControlledBy({ metadata }: KubeObject, owner: KubeObject): boolean {
  const controller = metadata.ownerReferences?.find((reference) => reference.controller === true);
  if (controller !== undefined) return controller.uid === controllerReference(owner).uid;
  return metadata.annotations?.[OWNER_UID_ANNOTATION] === owner.metadata.uid;
}

function isSharedBy({ metadata }: KubeObject, kind: AnyKind): boolean {
  const { ownerReferences = [], annotations = {} } = metadata;
  if (ownerReferences.some(({ controller }) => controller === true)) return false;
  return ownerReferences.some((reference) => reference.kind === kind.kind) && SHARED_KEY_ANNOTATION in annotations;
}

function idOf({ type, object }: LiveChild): string {
  return `${typeKey(type)}/${object.metadata.name}`;
}

function titleOf({ kind, metadata: { name } }: KubeObject): string {
  return `${kind} "${name}"`;
}

/** What an owner's status says that is not so, or does not say. */
function statusProblems(finding: OwnerCheck): readonly string[] {
  const { owner, obstacles } = finding;
  const { kind, metadata } = owner;
  const status = (owner['status'] ?? {}) as { readonly observedGeneration?: number };
  const problems = [
    ...(status.observedGeneration === metadata.generation ? [] : ['observedGeneration is behind']),
    ...(obstacles.size > 0 ? stalledProblems(finding) : readinessProblems(finding)),
    ...observedProblems(finding),
  ];
  const ready = JSON.stringify(findCondition(owner, 'Ready'));
  return problems.map((problem) => `${kind} "${metadata.name}": ${problem}; Ready is ${ready}`);
}

function stalledProblems({ owner, obstacles }: OwnerCheck): readonly string[] {
  const { reason = '' } = findCondition(owner, 'Ready') ?? {};
  const says = hasCondition(owner, 'Ready', 'False') && abnormal(owner) === 'Stalled=True' && obstacles.has(reason);
  return says ? [] : [`it must be Stalled for ${[...obstacles].join(' or ')}`];
}

function readinessProblems({ owner, live }: OwnerCheck): readonly string[] {
  const going = live.filter((child) => child.kind === owned.Deployment.kind && !isCurrent(child));
  if (going.length === 0)
    return hasCondition(owner, 'Ready', 'True') && abnormal(owner) === '' ? [] : ['all of its children are current'];
  const says = hasCondition(owner, 'Ready', 'False') && abnormal(owner) === 'Reconciling=True';
  const title = `Deployment "${going[0]?.metadata.name ?? ''}"`;
  if (!says) return [`${title} is not current`];
  // Its controller has not come to it yet, as after a restart of the API server: nothing has ended that goes on by itself.
  return going.every(isRefusedPods) ? [] : [`${title} is still on its way`];
}

/** The server refuses its pods; then it stays as it is. */
function isRefusedPods({ status = {} }: WorkloadObject): boolean {
  return status.conditions?.some(({ type, status }) => type === 'ReplicaFailure' && status === 'True') === true;
}

/** The conditions that stand only while they are true. */
function abnormal({ status }: KubeObject): string {
  const { conditions = [] } = (status ?? {}) as CommonStatus;
  const others = conditions.filter(({ type }) => type !== 'Ready');
  return others.map((other) => `${other.type}=${other.status}`).join(' ');
}

/** As `kubectl rollout status` sees it. */
function isCurrent(deployment: WorkloadObject): boolean {
  const { metadata, spec, status = {} } = deployment;
  const { replicas = 1 } = spec ?? {};
  const counts = [status.replicas, status.updatedReplicas, status.readyReplicas, status.availableReplicas];
  return status.observedGeneration === metadata.generation && counts.every((count) => (count ?? 0) === replicas);
}

/** The kind's own fields: what its `observe` makes of the children that stand. */
function observedProblems({ kind, owner, live }: OwnerCheck): readonly string[] {
  const observed = kind.observe?.({ self: withDefaults(kind, owner), children: observedChildren(live) }) ?? {};
  const status = (owner['status'] ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries(observed).flatMap(([field, value]) => {
    const path = firstDifference(value, status[field], `.status.${field}`);
    return path === undefined ? [] : [path];
  });
}

function observedChildren(live: readonly KubeObject[]): ObservedChildren {
  const all = <C extends KubeObject>(type: ResourceType<C>): readonly C[] =>
    live.filter((child): child is C => typeKey(child) === typeKey(type));
  return { all, one: (type) => all(type)[0] };
}
