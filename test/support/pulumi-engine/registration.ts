import type { Values } from './values';

/** Another URN that a resource may have had. */
export type Alias =
  | { readonly urn: string }
  | {
      readonly name?: string;
      readonly type?: string;
      readonly stack?: string;
      readonly project?: string;
      readonly parent?: string;
      readonly noParent: boolean;
    };

/** What a program asks for: one resource. */
export interface Registration {
  readonly type: string;
  readonly name: string;
  readonly parent: string;
  readonly custom: boolean;
  readonly inputs: Values;
  /** `<urn>::<id>`; empty: the default provider of the package. */
  readonly provider: string;
  readonly version: string;
  readonly dependencies: readonly string[];
  readonly propertyDependencies: Readonly<Record<string, readonly string[]>>;
  /** Undefined: as its parent. */
  readonly protect: boolean | undefined;
  /** Undefined: as its parent. */
  readonly retainOnDelete: boolean | undefined;
  readonly deleteBeforeReplace: boolean | undefined;
  readonly ignoreChanges: readonly string[];
  readonly replaceOnChanges: readonly string[];
  readonly additionalSecretOutputs: readonly string[];
  readonly aliases: readonly Alias[];
  readonly importId: string;
  readonly deletedWith: string;
  readonly timeouts: { readonly create?: number; readonly update?: number };
}

/** What a program is told of its resource. */
export interface Registered {
  readonly urn: string;
  /** Empty: a component, or not known yet. */
  readonly id: string;
  readonly outputs: Values;
}

/**
 * Milliseconds of a duration as Go writes them: `1h30m`, `90s`, `250ms`. Undefined for an empty text.
 *
 * @throws Error when it is none
 */
export function durationMs(text: string): number | undefined {
  if (text === '') return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g)];
  if (parts.map(([whole]) => whole).join('') !== text) throw new Error(`"${text}" is no duration, such as 10m or 90s`);
  const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * units[unit!]!, 0);
}
