import * as pulumi from '@pulumi/pulumi';

/** An Output that a preview knows nothing of. `pulumi.unknown` is there, and missing in Pulumi's types. */
export function unknownOutput<T>(): pulumi.Output<T> {
  const { unknown } = pulumi as unknown as { readonly unknown: unknown };
  return pulumi.output(unknown) as pulumi.Output<T>;
}
