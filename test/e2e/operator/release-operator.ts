import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiObject } from 'cdk8s';
import { z } from 'zod';
import { own } from '../../../constructs/kind/child-policy';
import { defineKind } from '../../../constructs/kind/kind';
import { owned } from '../../../constructs/kube/resource-type';
import { PlanError, main, runPlans } from '../../../operator';

/** A Deployment of the image that a channel has, which is looked up again every hour. */
export const Release = defineKind({
  group: 'e2e.example.com',
  version: 'v1',
  kind: 'Release',
  plural: 'releases',
  scope: 'Namespaced',
  description: 'What a channel has.',
  spec: z.object({ channel: z.string().max(20).default('stable').describe('The channel.') }),
  status: z.object({ image: z.string().optional().describe('The image that the channel has.') }),
  owns: [own(owned.Deployment, { ready: 'ignore' })],
  effects: [
    {
      ...{ name: 'look-up', phase: 'apply', plan: 'release.look-up', timeoutSeconds: 30, everySeconds: 3600 },
      input: ({ spec: { channel } }) => ({ channel }),
      maxAttempts: () => 10,
    },
  ],
  children(scope, { metadata: { name }, spec: { channel }, status }) {
    if (status?.image === undefined) return;
    const labels = { app: name };
    new ApiObject(scope, 'deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, labels: { channel } } },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'app', image: status.image }] } },
      },
    });
  },
});

const folder = process.env['RELEASES'] ?? '';

// The test imports the kind, and runs this file as the program.
if (folder !== '') {
  main({
    kinds: [Release],
    effects: runPlans({
      'release.look-up': ({ run }) => {
        const channel = run.input['channel'] as string;
        try {
          const image = readFileSync(join(folder, channel), 'utf8');
          return Promise.resolve({ message: `It has ${image}.`, status: { image } });
        } catch (cause) {
          throw new PlanError('ErrLookUp', `The channel ${channel} does not answer.`, { cause });
        }
      },
    }),
  });
}
