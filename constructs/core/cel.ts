/**
 * A validation rule in CEL that the API server evaluates.
 * Source: KEP-2876, `x-kubernetes-validations`.
 */
export interface CelRule {
  /** The expression; `self` is the value the rule stands on, `oldSelf` its value before (transition rules). */
  readonly rule: string;
  /** What the user reads when the rule is false. */
  readonly message: string;
  /** An expression that yields the message; the server prefers it over `message`. */
  readonly messageExpression?: string;
  /** Which field the error names, for example `.spec.version`. */
  readonly fieldPath?: string;
  /** @default 'FieldValueInvalid' */
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
  /** Also evaluate a transition rule on creation, with `oldSelf` optional. @default false */
  readonly optionalOldSelf?: boolean;
}

/** A CEL rule with the message that a violation shows. */
export function cel(rule: string, message: string, options: Omit<CelRule, 'rule' | 'message'> = {}): CelRule {
  return Object.freeze({ rule, message, ...options });
}
