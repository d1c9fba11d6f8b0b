import * as pulumi from '@pulumi/pulumi';
import { textToken } from './token-text';
import { tokenFor } from './tokens';

/** How a token is told apart from others. */
export interface TokenOptions {
  /**
   * A name of the value, unique within the tree. What is derived of rendered text, such as a checksum of a configuration, then
   * follows from it.
   * @default the place of the token among those of its tree
   */
  readonly id?: string;
}

/**
 * Places for Outputs in props that want plain values. The bridge puts the Outputs where these stand, alone or within a string.
 *
 * Guarantees: a secret stays secret and what is unknown in a preview stays unknown, at its own place only.
 *
 * Caveats: code that looks at the value sees a stand-in: its length, its digits and its hash are not the value's. Within JSON or YAML text
 * the value is put in as it is, unquoted: make such texts of Outputs with `pulumi.jsonStringify`.
 */
export const outputs = {
  /** A text that stands for an Output's. It is a valid DNS label. */
  text(output: pulumi.Input<string>, options: TokenOptions = {}): string {
    if (typeof output === 'string') return output;
    return textToken(tokenFor(asOutput(output), options.id).id);
  },

  /**
   * A number that stands for an Output's: an integer that an int32 holds. A schema with a lower maximum refuses it, unless the object is
   * made with {@link KindResource}.
   */
  number(output: pulumi.Input<number>, options: TokenOptions = {}): number {
    if (typeof output === 'number') return output;
    return tokenFor(asOutput(output), options.id).number;
  },

  /**
   * An Output in a place of any type, or a value with Outputs in it. It only stands where the construct hands the value on without looking at
   * it: at any place of a plain `ApiObject`, and at the leaves of cdk8s's generated constructs.
   */
  any<T>(output: pulumi.Input<T>): T {
    return output as T;
  },
} as const;

function asOutput(value: unknown): pulumi.Output<unknown> {
  return pulumi.Output.isInstance(value) ? value : pulumi.output(value);
}
