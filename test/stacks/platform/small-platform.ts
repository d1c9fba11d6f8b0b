import type * as pulumi from '@pulumi/pulumi';
import { HelloApp } from '../../../constructs';
import { PlatformComponent } from '../../../stacks/components';
import type { PlatformComponentArgs } from '../../../stacks/components';
import { KUBECONFIG } from '../memory-cluster';

/** One operator, of one kind. */
export const operators = [{ name: 'operator', image: 'op:1', kinds: [HelloApp] }];

/** A platform with {@link operators}, unless told otherwise. */
export const platform = (
  args: Partial<PlatformComponentArgs> = {},
  opts: pulumi.ComponentResourceOptions = {},
  name = 'kindred',
): PlatformComponent => new PlatformComponent(name, { kubeconfig: KUBECONFIG, operators, ...args }, opts);

/** A program with that platform alone. */
export const program =
  (args: Partial<PlatformComponentArgs> = {}) =>
  (): object => {
    platform(args);
    return {};
  };
