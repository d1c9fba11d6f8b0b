import * as pulumi from '@pulumi/pulumi';
import * as fc from 'fast-check';
import type { RemoteClusterArgs } from '../../../stacks/remote-cluster/remote-cluster';
import { CANARY, clusterOf, expectNoneInTheOpen } from './canaries';

// The gate has two such clusters: secrets.test.ts.

/** Whatever a cluster is made of, no secret of it stands in the open in anything that is registered. */
jest.setTimeout(900_000);

/** A text that has the canary in it, and what shells, YAML and JSON would trip over. */
const secretText = fc
  .string({ unit: fc.constantFrom('"', "'", '\\', '$', '`', '\n', ' ', 'ü', ':', '#', '{', 'a'), maxLength: 12 })
  .map((text) => `${text}${CANARY}${text}`);

const secret = fc.tuple(secretText, fc.boolean()).map(([text, marked]) => (marked ? pulumi.secret(text) : text));

const clusters: fc.Arbitrary<RemoteClusterArgs> = fc
  .record({
    distribution: fc.constantFrom('rke2' as const, 'k3s' as const),
    servers: fc.constantFrom(1, 3),
    agents: fc.integer({ min: 0, max: 2 }),
    bastion: fc.boolean(),
    sshKey: secret,
    bastionKey: fc.option(secret, { nil: undefined }),
    sshKeyPassphrase: fc.option(secret, { nil: undefined }),
    password: secret,
    outputs: fc.boolean(),
  })
  .map(clusterOf);

test('no canary stands in the open, wherever it came in', async () => {
  await fc.assert(fc.asyncProperty(clusters, expectNoneInTheOpen), { numRuns: 12 });
});
