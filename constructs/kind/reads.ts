import type { Problem } from '../kube/errors';
import { nameProblem } from '../kube/names';
import { typeKey, type ResourceType } from '../kube/resource-type';

/** Where an object stands. */
export interface ObjectRef {
  /** Absent for cluster-scoped types. */
  readonly namespace?: string;
  readonly name: string;
}

/** Where one value of a Secret or ConfigMap stands. */
export interface ObjectKeyRef extends ObjectRef {
  /** Key within `data`. */
  readonly key: string;
}

/**
 * Objects that a kind looks at and never writes: the Secrets that its specs name, for example. What a pod mounts is the kubelet's to
 * read and needs no entry.
 *
 * Guarantees:
 * - An object is read by `get`, by its name. Nothing is listed or watched for a read: a watch would hand over every Secret of a
 *   namespace, and RBAC cannot know which names specs will bear.
 * - What was read is looked at again at every reconcile and every resync; another UID or resourceVersion wakes the object that
 *   refers to it, as a change of its spec would, and ends `Stalled`.
 * - Only the namespaces that the operator is configured with are read. A reference that leads elsewhere makes the object `Stalled` and
 *   causes no request.
 * - Values of Secrets are never cached, logged, hashed into status, or shown in a condition.
 *
 * Assumptions: the operator's role grants `get` on the type in those namespaces. `refs` is pure.
 *
 * Caveats: a change is noticed at the next resync, not at once.
 *
 * Errors: an object that does not stand there keeps effects from running, and shows in `Ready` under its reference.
 */
export interface Read<Self> {
  /** What the objects are to the kind, in messages: a lower-case word such as `ssh-key`. Unique within the kind. */
  readonly name: string;
  readonly type: ResourceType;
  /** The objects that `self` refers to, in any order; one may be named twice. */
  readonly refs: (self: Self) => readonly ObjectRef[];
}

/** One object that an object of a kind looks at. */
export interface ResolvedRead {
  /** See {@link Read.name}: that of the first read that asks for it. */
  readonly name: string;
  readonly type: ResourceType;
  readonly ref: ObjectRef;
}

/**
 * What `self` looks at, each object once, in the order of the reads.
 *
 * @throws TypeError when a reference lacks the namespace that its type needs, or bears one that its type does not have
 */
export function resolveReads<Self>(reads: readonly Read<Self>[], self: Self): readonly ResolvedRead[] {
  const found = new Map<string, ResolvedRead>();
  for (const { name, type, refs } of reads) {
    for (const ref of refs(self)) {
      if ((ref.namespace === undefined) !== (type.scope === 'Cluster')) {
        const wrong =
          ref.namespace === undefined ? 'has no namespace' : 'has a namespace, which its type does not have';
        throw new TypeError(`the read "${name}" asks for ${type.kind} ${ref.name}, which ${wrong}`);
      }
      const id = [typeKey(type), ref.namespace ?? '', ref.name].join('/');
      const plain = ref.namespace === undefined ? { name: ref.name } : { namespace: ref.namespace, name: ref.name };
      if (!found.has(id)) found.set(id, { name, type, ref: plain });
    }
  }
  return [...found.values()];
}

/** What is wrong with a kind's reads. */
export function readDeclarationProblems(reads: readonly Read<never>[]): Problem[] {
  const problems: Problem[] = [];
  const names = new Set<string>();
  reads.forEach(({ name }, i) => {
    const path = `reads[${String(i)}].name`;
    const problem = nameProblem(name, { format: 'dns-label' });
    if (problem !== undefined) problems.push({ path, message: problem });
    if (names.has(name)) problems.push({ path, message: `"${name}" stands twice` });
    names.add(name);
  });
  return problems;
}
