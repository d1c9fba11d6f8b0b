import * as pulumi from '@pulumi/pulumi';
import { CANARY, clusterOf, expectNoneInTheOpen, forms } from './canaries';
import type { ClusterParts } from './canaries';

// Clusters of all sorts are in secrets.slow.test.ts.

/** Whatever a cluster is made of, no secret of it stands in the open in anything that is registered. */
jest.setTimeout(300_000);

/** A canary among what shells, YAML and JSON would trip over. */
const text = `"'\\$\`\n ü:#{${CANARY}"'\\$\`\n ü:#{`;
const clusters: readonly ClusterParts[] = [
  {
    ...{ distribution: 'k3s', servers: 1, agents: 1, bastion: true, outputs: false },
    ...{ sshKey: text, bastionKey: text, sshKeyPassphrase: text, password: text },
  },
  {
    ...{ distribution: 'rke2', servers: 3, agents: 0, bastion: false, outputs: true },
    ...{ sshKey: pulumi.secret(text), bastionKey: undefined, sshKeyPassphrase: pulumi.secret(text) },
    password: pulumi.secret(text),
  },
];

test.each(clusters)('no canary stands in the open in a cluster of $distribution', async (parts) => {
  await expectNoneInTheOpen(clusterOf(parts));
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
