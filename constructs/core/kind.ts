import { z } from 'zod';
import type { CelRule } from './cel';
import type { Effect } from './effects';
import { KindDefinitionError } from './errors';
import type { Problem } from './errors';
import { definitionProblems } from './kind-checks';
import type { ConditionType, KindProps, Sample, TypedObject } from './kind-props';
import type { PrinterColumn } from './kubectl-columns';
import type { Seed, SharedChildren } from './ownership';
import type { Read } from './reads';
import { typeKey } from './resource-type';
import type { ResourceType } from './resource-type';
import { structuralSchema } from './structural-schema';
import type { StructuralSchema } from './structural-schema';
import { pointerProblems } from './structural-schema-paths';
import { otherVersions } from './versions-definition';
import type { KindVersion } from './versions-definition';

export type {
  CommonStatus,
  ConditionType,
  KindProps,
  Observation,
  ObservedChildren,
  Reason,
  ReportedCondition,
  Sample,
  TypedObject,
} from './kind-props';
export type { PrinterColumn, ScaleSubresource } from './kubectl-columns';

/** A defined kind: inert, frozen data that every surface is derived from. */
export interface Kind<S extends z.ZodObject = z.ZodObject, T extends z.ZodObject = z.ZodObject> extends Readonly<
  KindProps<S, T>
> {
  readonly singular: string;
  readonly categories: readonly string[];
  readonly shortNames: readonly string[];
  readonly status: T;
  readonly columns: readonly PrinterColumn[];
  readonly rules: readonly CelRule[];
  readonly formerlyOwned: readonly ResourceType[];
  readonly shared: readonly SharedChildren<TypedObject<S, T>>[];
  readonly seeds: readonly Seed[];
  readonly reads: readonly Read<TypedObject<S, T>>[];
  readonly effects: readonly Effect<TypedObject<S, T>>[];
  readonly conditionTypes: readonly ConditionType[];
  readonly lastUpdateTime: boolean;
  readonly samples: readonly Sample<S>[];
  readonly versions: readonly KindVersion<S>[];
  /** `<plural>.<group>`. */
  readonly crdName: string;
  /** `<group>/<version>`. */
  readonly apiVersion: string;
  /** The kind as a resource of the API. */
  readonly type: ResourceType;
  /** `spec` and `status` as a CRD carries them. */
  readonly schema: { readonly spec: StructuralSchema; readonly status: StructuralSchema };
}

/**
 * A kind of any spec: what code that serves every kind takes. The spec's type stands in argument positions, so no common
 * supertype exists; `any` is confined to this name.
 */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyKind = Kind<any, any>;

/** The type of a kind's objects: `type HelloApp = KindObject<typeof HelloApp>`. */
export type KindObject<K> = K extends Kind<infer S, infer T> ? TypedObject<S, T> : never;

/** What a user may write as a kind's spec: defaults are optional. */
export type KindSpec<K> = K extends Kind<infer S> ? z.input<S> : never;

const noStatus = z.object({});

/**
 * Defines a kind: checks the definition, derives its schema, and freezes it.
 *
 * @throws KindDefinitionError naming every field that Kubernetes cannot express or would refuse
 */
export function defineKind<
  S extends z.ZodObject,
  T extends z.ZodObject = typeof noStatus,
  const V extends readonly z.ZodObject[] = readonly z.ZodObject[],
>(definition: KindProps<S, T, V>): Kind<S, T> {
  // Outside, each version has the types of its own schema; from here on they are one list.
  const props = definition as unknown as KindProps<S, T>;
  const problems = definitionProblems(props);
  const status = props.status ?? (noStatus as unknown as T);
  const spec = structuralSchema(props.spec, 'spec', problems);
  const statusSchema = structuralSchema(withConditionFields(status, props), 'status', problems);
  problems.push(...requiredStatusProblems(statusSchema), ...pointerProblems(props, spec, statusSchema));
  const versions = otherVersions(props, statusSchema, problems);
  if (problems.length > 0) throw new KindDefinitionError(props.kind, problems);

  const apiVersion = `${props.group}/${props.version}`;
  const { kind, plural, scope } = props;
  return Object.freeze({
    ...props,
    singular: props.singular ?? kind.toLowerCase(),
    categories: Object.freeze([...(props.categories ?? ['kindred'])]),
    shortNames: Object.freeze([...(props.shortNames ?? [])]),
    status,
    columns: Object.freeze([...(props.columns ?? [])]),
    rules: Object.freeze([...(props.rules ?? [])]),
    owns: Object.freeze([...props.owns]),
    formerlyOwned: Object.freeze([...(props.formerlyOwned ?? [])]),
    shared: Object.freeze([...(props.shared ?? [])]),
    seeds: Object.freeze([...(props.seeds ?? [])]),
    reads: Object.freeze([...(props.reads ?? [])]),
    effects: Object.freeze([...(props.effects ?? [])]),
    conditionTypes: Object.freeze([...(props.conditionTypes ?? [])]),
    lastUpdateTime: props.lastUpdateTime ?? false,
    samples: Object.freeze([...(props.samples ?? [])]),
    versions,
    crdName: `${plural}.${props.group}`,
    apiVersion,
    type: Object.freeze({ apiVersion, kind, plural, scope }),
    schema: Object.freeze({ spec, status: statusSchema }),
  });
}

/** A status is written before there is anything to observe: paused, or with a spec that does not fit. */
function requiredStatusProblems({ required = [] }: StructuralSchema): Problem[] {
  return (required as readonly string[]).map((field) => ({
    path: `status.${field}`,
    message: 'a status may stand without it, for example while the object is paused; add .optional()',
  }));
}

/** A status whose `conditions` say what sets this kind's apart; the CRD adds what all conditions have. */
function withConditionFields(status: z.ZodObject, props: ConditionProps): z.ZodObject {
  const { conditionTypes = [], lastUpdateTime = false } = props;
  if (conditionTypes.length === 0 && !lastUpdateTime) return status;
  const updated = z
    .string()
    .meta({ format: 'date-time', description: 'When the status, reason or message last changed.' });
  const condition = z.object(lastUpdateTime ? { lastUpdateTime: updated.optional() } : {});
  const own = conditionTypes.map(({ type, description }) => `${type}: ${description}`);
  const description = [...own, ...(lastUpdateTime ? ['Each carries lastUpdateTime.'] : [])].join(' ');
  return status.extend({ conditions: z.array(condition).optional().describe(description) });
}

type ConditionProps = Pick<KindProps<z.ZodObject, z.ZodObject>, 'conditionTypes' | 'lastUpdateTime'>;

/** Every type that an operator of the kind watches and may write: owned, shared and formerly owned, each once. */
export function childTypes(kind: AnyKind): readonly ResourceType[] {
  const all = [...kind.owns, ...kind.shared.flatMap((group) => group.owns), ...kind.formerlyOwned];
  return [...new Map(all.map((type) => [typeKey(type), type])).values()];
}
