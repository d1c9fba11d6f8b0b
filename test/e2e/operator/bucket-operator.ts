import { appendFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Effect } from '../../../constructs/kind/effects';
import { defineKind, type KindObject } from '../../../constructs/kind/kind';
import { owned } from '../../../constructs/kube/resource-type';
import { PlanError, main, runPlans, type PlanRunner } from '../../../operator';

const common = { group: 'e2e.example.com', version: 'v1', owns: [], children: () => undefined } as const;
const spec = z.object({
  size: z.int32().min(1).default(1).describe('How large.'),
  secretName: z.string().max(253).optional().describe('Secret with the password, in the namespace of the bucket.'),
});
const status = z.object({
  path: z.string().optional().describe('Where it is.'),
  attempts: z.int32().optional().describe('Runs begun.'),
});
type Self = { readonly spec: { readonly size: number } };
const effects: readonly Effect<Self>[] = [
  {
    name: 'make',
    phase: 'apply',
    plan: 'bucket.make',
    input: ({ spec: { size } }) => ({ size }),
    condition: 'Made',
    timeoutSeconds: 30,
    maxAttempts: () => 3,
  },
  {
    name: 'remove',
    phase: 'remove',
    plan: 'bucket.remove',
    input: () => ({}),
    timeoutSeconds: 30,
    maxAttempts: () => 3,
  },
];
const conditionTypes = [{ type: 'Made', description: 'The bucket exists as it was asked for.' }];

/** A folder of this machine, as something that a cluster knows nothing of. */
export const Bucket = defineKind({
  ...{ ...common, kind: 'Bucket', plural: 'buckets', scope: 'Namespaced', description: 'A folder.' },
  ...{ spec, status, effects, conditionTypes },
  finalizer: { name: 'e2e.example.com/bucket', propagation: 'Background' },
  reads: [
    {
      name: 'password',
      type: owned.Secret,
      refs: ({ spec: { secretName }, metadata: { namespace = '' } }) =>
        secretName === undefined ? [] : [{ namespace, name: secretName }],
    },
  ],
});

/** The same for the whole cluster. */
export const Region = defineKind({
  ...{ ...common, kind: 'Region', plural: 'regions', scope: 'Cluster', description: 'A folder.' },
  ...{ spec, status, effects, conditionTypes },
  finalizer: { name: 'e2e.example.com/region', propagation: 'Background' },
});

const folder = process.env['BUCKETS'] ?? '';
const log = (line: string): Promise<void> => appendFile(join(folder, 'log'), `${line}\n`);

const make: PlanRunner = async ({ object, run, secret, values }) => {
  const {
    metadata: { namespace = '', name },
    spec: { secretName },
  } = object as KindObject<typeof Bucket>;
  if (run.input['size'] === 13)
    throw new PlanError('ErrSize', 'No bucket has the size 13. Name another.', { isTerminal: true });
  const password = secretName === undefined ? 'none' : await secret({ namespace, name: secretName, key: 'password' });
  const path = join(folder, `${namespace}_${name}`);
  await mkdir(path, { recursive: true });
  await writeFile(join(path, 'size'), JSON.stringify(run.input['size']));
  await values.put({ path, password });
  await log(`make ${name} ${JSON.stringify(run.input['size'])}`);
  return { message: `It is in ${path}.`, status: { path } };
};

const remove: PlanRunner = async ({ object: { metadata }, values }) => {
  const { path, password = '' } = values.all();
  if (path === undefined) return { message: 'It was never made.' };
  await log(`remove ${metadata.name} with the password ${password}`);
  await rm(path, { recursive: true });
  return { message: 'It is removed.' };
};

// The test imports the kinds, and runs this file as the program.
if (folder !== '') {
  main({ kinds: [Bucket, Region], effects: runPlans({ 'bucket.make': make, 'bucket.remove': remove }) });
}
