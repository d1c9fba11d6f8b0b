import type { Problem } from '../kube/errors';
import { nameProblem } from '../kube/names';
import { typeKey, type ResourceType } from '../kube/resource-type';

/**
 * Objects that a kind reads and never writes, such as the Secrets that its specs name. The kubelet reads what
 * a pod mounts; that needs no entry.
 *
 * Guarantees:
 * - An object is read by `get`, by its name. Nothing is listed or watched for a read: a watch would deliver
 *   every Secret of a namespace, and RBAC cannot know which names specs will contain.
 * - The objects are read again at every reconcile and every resync; a new UID or resourceVersion enqueues the
 *   object that refers to them, as a change of its spec would, and ends `Stalled`.
 * - Only the namespaces that the operator is configured with are read. A reference to another namespace makes
 *   the object `Stalled` and causes no request.
 * - Values of Secrets are never cached, logged, hashed into status, or shown in a condition.
 *
 * Assumptions: the operator's role grants `get` on the type in those namespaces. `refs` is pure.
 *
 * Caveats: a change is noticed at the next resync, not at once.
 *
 * Errors: while an object does not exist, no effect runs, and `Ready` names the reference.
 */
export interface Read<Self> {
  /** What the objects are to the kind, in messages: a lower-case word such as `ssh-key`. Unique within the kind. */
  readonly name: string;
  readonly type: ResourceType;
  /** The objects that `self` refers to, in any order; one may be named twice. */
  readonly refs: (self: Self) => readonly ObjectRef[];
}

/** The name of an object, and its namespace. */
export interface ObjectRef {
  /** Absent for cluster-scoped types. */
  readonly namespace?: string;
  readonly name: string;
}

/** A reference to one value of a Secret or ConfigMap. */
export interface ObjectKeyRef extends ObjectRef {
  /** Key within `data`. */
  readonly key: string;
}

/** One object that an object of a kind reads. */
export interface ResolvedRead {
  /** {@link Read.name} of the first read that refers to it. */
  readonly name: string;
  readonly type: ResourceType;
  readonly ref: ObjectRef;
}

/**
 * The objects that `self` reads, each once, in the order of the reads.
 *
 * @throws TypeError when a reference to a namespaced type has no namespace, or one to a cluster-scoped type
 * has one
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
