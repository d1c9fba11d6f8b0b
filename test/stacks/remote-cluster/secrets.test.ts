import * as pulumi from '@pulumi/pulumi';
import * as fc from 'fast-check';
import { RemoteCluster } from '../../../stacks/components/remote-cluster';
import type { NodeArgs, RemoteClusterArgs } from '../../../stacks/components/remote-cluster';
import { agent, server } from './clusters';
import { plainTexts, record } from './recorder';

/** Whatever a cluster is made of, no secret of it stands in the open in anything that is registered. */
jest.setTimeout(300_000);

const CANARY = 'canary-3f9a61';
/** A text that has the canary in it, and what shells, YAML and JSON would trip over. */
const secretText = fc
  .string({ unit: fc.constantFrom('"', "'", '\\', '$', '`', '\n', ' ', 'ü', ':', '#', '{', 'a'), maxLength: 12 })
  .map((text) => `${text}${CANARY}${text}`);

/** All forms in which a text could stand somewhere: as it is, and in base64 at any offset, twice too. */
function forms(text: string): readonly string[] {
  const shifted = (inner: string) =>
    [0, 1, 2].map((shift) =>
      Buffer.from(' '.repeat(shift) + inner)
        .toString('base64')
        .slice(shift === 0 ? 0 : 4, -4),
    );
  const once = shifted(text);
  return [text, ...once, ...once.flatMap(shifted)];
}

const secret = fc.tuple(secretText, fc.boolean()).map(([text, marked]) => (marked ? pulumi.secret(text) : text));

const withBastion = (node: NodeArgs, sshKey: pulumi.Input<string> | undefined): NodeArgs => ({
  ...node,
  bastion: { address: '10.0.1.1', user: 'jump', hostKey: `ssh-ed25519 ${'B'.repeat(68)}`, ...(sshKey && { sshKey }) },
});

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
  .map(({ distribution, servers, agents, bastion, bastionKey, sshKeyPassphrase, password, outputs, sshKey }) => {
    const plain = [
      ...Array.from({ length: servers }, (_, i) => server(i + 1)),
      ...Array.from({ length: agents }, (_, i) => agent(10 + i)),
    ].map((node) => (bastion ? withBastion(node, bastionKey) : node));
    const nodes = plain.map((node, i) =>
      outputs ? { ...node, name: `node-${i}`, address: pulumi.output(node.address) } : node,
    );
    const registry = { host: 'registry.example.com', credentialsSecretRef: { namespace: 'infra', name: 'registry' } };
    return {
      ...{ distribution, nodes, sshKey, sshKeyPassphrase },
      version: distribution === 'rke2' ? 'v1.30.4+rke2r1' : 'v1.30.4+k3s1',
      options: { registrationAddress: 'k8s.example.com', registries: [registry] },
      secrets: { 'infra/registry': { username: 'reader', password } },
    };
  });

test('no canary stands in the open, wherever it came in', async () => {
  const token = `${CANARY}-token`;
  const answers = () => ({ token, kubeconfig: `${CANARY}-kubeconfig`, hostname: 'host' });
  const needles = [...forms(CANARY)];
  await fc.assert(
    fc.asyncProperty(clusters, async (args) => {
      const found = await record(() => new RemoteCluster('prod', args).provider, { answers });
      expect(found.length).toBeGreaterThan(8);
      // It does get there, as a secret.
      expect(JSON.stringify(found.map(({ inputs }) => inputs))).toContain(CANARY);
      for (const { name, inputs } of found) {
        const texts = plainTexts(inputs);
        expect({ name, leaked: texts.filter((text) => needles.some((needle) => text.includes(needle))) }).toEqual({
          name,
          leaked: [],
        });
      }
    }),
    { numRuns: 12 },
  );
});

test('the search finds what it should', () => {
  const hidden = [
    CANARY,
    ...['x', 'xx', 'xxx'].map((before) => Buffer.from(`${before}${CANARY} and more`).toString('base64')),
  ];
  for (const text of [...hidden, ...hidden.map((inner) => Buffer.from(`a ${inner} b`).toString('base64'))]) {
    expect(forms(CANARY).some((needle) => text.includes(needle))).toBe(true);
  }
});
