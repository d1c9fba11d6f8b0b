import { z } from 'zod';
import type { AnyKind } from '../../constructs/core/kind';

/** A kind by the name of its CRD, or by its own: whichever a person finds at hand. */
export function kindName(known: readonly AnyKind[]): z.ZodType<string> {
  return z.string().superRefine((name, context) => {
    if (findKind(known, name) !== undefined) return;
    const names = known.map(({ kind }) => kind).join(', ');
    context.addIssue({ code: 'custom', message: `"${name}" is no kind of the operator; there are ${names}` });
  });
}

/** The kind of that name, if there is one. */
export function findKind(known: readonly AnyKind[], name: string): AnyKind | undefined {
  return known.find(({ kind, crdName }) => name === kind || name === crdName);
}
