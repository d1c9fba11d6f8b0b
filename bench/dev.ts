import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SHARED_PACKAGES } from '../cli/bundle/packages-outside';
import { crdManifest } from '../constructs/crd/custom-resource-definition';
import { HelloApp } from '../constructs/kinds';
import type { KubeObject } from '../constructs/kube/kube-object';
import { owned, type ResourceType } from '../constructs/kube/resource-type';
import { runTool } from '../local/assets/process';
import type { ApiClient } from '../operator/client/api-client';
import { kubeconfigClient } from '../testing';
import { WatchObserver } from './edits';
import { MeasuredProcess, spawnWithSignal } from './measured-process';
import { printTimes } from './times';
import { twin } from './operators-under-test';

const root = join(__dirname, '..');

/** One way from a change to the child that shows it. */
interface Contestant {
  readonly name: string;
  /** Makes the change. @returns milliseconds until a watch shows the changed child */
  change(round: number): Promise<number>;
}

/** A kind whose child has the label `round`. */
const source = (round: number, fields = 1): string => `import { k8s } from 'cdk8s-plus-27';
import { defineKind, owned } from 'kindred/constructs';
import { z } from 'zod';

export const Note = defineKind({
  group: 'notes.example.com', version: 'v1', kind: 'Note', plural: 'notes', scope: 'Namespaced',
  description: 'A note.',
  spec: z.object({
    text: z.string().max(99).describe('The text.'),
    ${Array.from({ length: fields }, (_, i) => `field${String(i)}: z.string().max(99).optional().describe('A field.'),`).join('\n    ')}
  }),
  owns: [owned.ConfigMap],
  samples: [{ name: 'subject', spec: { text: 'hello' } }],
  children(scope, { metadata: { name }, spec }) {
    new k8s.KubeConfigMap(scope, 'note', { metadata: { name, labels: { round: '${String(round)}' } }, data: { text: spec.text } });
  },
});
`;

/** `npm run bench:dev -- [--rounds=15] [--json]` */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: '15' }, json: { type: 'boolean', default: false } },
  });
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => stop.abort(new Error(`stopped by ${name}`)));
  const folder = await mkdtemp(join(tmpdir(), 'kindred-bench-dev-'));
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const project = await createProject(folder);
    const dev = await startDev(project, stop.signal);
    undo.unshift(() => dev.stop());
    const client = await kubeconfigClient(dev.kubeconfig);
    undo.unshift(() => client.close());
    const notes = await WatchObserver.start(client, owned.ConfigMap, 'notes-samples', stop.signal);
    undo.unshift(() => notes.stop());
    const contestants = [...ours(client, project, notes)];
    const peer = await startTwin({ client, folder, kubeconfig: dev.kubeconfig, signal: stop.signal });
    if (typeof peer === 'string') console.error(`bench: ${peer}`);
    else {
      undo.unshift(() => peer.stop());
      contestants.push(peer);
    }
    const times = new Map(contestants.map(({ name }) => [name, [] as number[]]));
    // The first round warms up caches, such as that of the Go compiler.
    for (let round = 1; round <= Number(values.rounds) + 1; round += 1) {
      for (const contestant of contestants) {
        const ms = await contestant.change(round);
        console.error(`bench: round ${String(round - 1)}: ${contestant.name}: ${ms.toFixed(0)} ms`);
        if (round > 1) times.get(contestant.name)?.push(ms);
        await rest();
      }
    }
    printTimes('From the change to the child', times, values.json);
  } finally {
    for (const end of undo) await end();
  }
}

/** What the change before left behind, such as the start of the next process, is not part of the next one. */
const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 2500));

async function createProject(folder: string): Promise<string> {
  const project = join(folder, 'notes');
  await mkdir(join(project, 'node_modules'), { recursive: true });
  for (const name of SHARED_PACKAGES)
    await symlink(join(root, 'node_modules', name), join(project, 'node_modules', name));
  await symlink(root, join(project, 'node_modules/kindred'));
  await writeFile(
    join(project, 'package.json'),
    JSON.stringify({ name: 'notes', version: '1.0.0', kindred: { kinds: 'note.ts' } }),
  );
  await writeFile(join(project, 'note.ts'), source(0));
  return project;
}

async function startDev(
  project: string,
  signal: AbortSignal,
): Promise<{ readonly kubeconfig: string; stop(): Promise<void> }> {
  const args = [join(root, 'dist/cli.cjs'), `--project=${project}`, 'dev'];
  const child: ChildProcess = spawnWithSignal({ command: process.execPath, args, env: env() }, 'ignore', signal);
  const ended = once(child, 'close');
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (more: string) => (text += more));
  const kubeconfig = await new Promise<string>((resolve, reject) => {
    child.stdout?.setEncoding('utf8').on('data', (more: string) => {
      text += more;
      const [, file] = /export KUBECONFIG=(\S+)/.exec(text) ?? [];
      if (file !== undefined) resolve(file);
    });
    child.once('close', () => reject(new Error(`kindred dev has ended:\n${text}`)));
  });
  const end = async (): Promise<void> => {
    child.kill('SIGINT');
    await ended;
  };
  return { kubeconfig, stop: end };
}

const env = (): Record<string, string> => ({ PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' });

function* ours(client: ApiClient, project: string, notes: WatchObserver): Iterable<Contestant> {
  const since = async (change: () => Promise<unknown>, wanted: (object: KubeObject) => boolean): Promise<number> => {
    const seen = notes.waitFor('subject', wanted);
    const began = performance.now();
    await change();
    return (await seen) - began;
  };
  const save = (text: string): Promise<void> => writeFile(join(project, 'note.ts'), text);
  const label = (value: string) => (object: KubeObject) => object.metadata.labels?.['round'] === value;
  let fields = 1;
  yield {
    name: 'the operator alone: an edit of the spec',
    change: (round) =>
      since(
        () =>
          client.patch(
            noteType,
            { namespace: 'notes-samples', name: 'subject' },
            { spec: { text: `edit ${String(round)}` } },
            { type: 'merge', fieldManager: 'bench' },
          ),
        ({ data }) => (data as Record<string, string>)['text'] === `edit ${String(round)}`,
      ),
  };
  yield {
    name: 'kindred dev: a saved change of children',
    change: (round) => since(() => save(source(2 * round, fields)), label(String(2 * round))),
  };
  yield {
    name: 'kindred dev: a saved change of schema and children',
    change: (round) => {
      fields = fields === 1 ? 2 : 1;
      return since(() => save(source(2 * round + 1, fields)), label(String(2 * round + 1)));
    },
  };
}

/** The tuned twin, which is built and started again. @returns why it is left out, or it */
async function startTwin({
  client,
  folder,
  kubeconfig,
  signal,
}: {
  readonly client: ApiClient;
  readonly folder: string;
  readonly kubeconfig: string;
  readonly signal: AbortSignal;
}): Promise<(Contestant & { stop(): Promise<void> }) | string> {
  const sources = join(folder, 'twin');
  await cp(join(root, 'bench/peers/controller-runtime'), sources, { recursive: true });
  const file = join(folder, 'twin-program');
  const original = await readFile(join(sources, 'desired.go'), 'utf8');
  const build = async (round: number): Promise<string | undefined> => {
    await writeFile(join(sources, 'desired.go'), original.replaceAll('"twin"', `"twin-${String(round)}"`));
    const args = ['build', '-trimpath', '-mod=readonly', '-o', file, '.'];
    const result = await runTool('go', args, { cwd: sources, env: { ...process.env, CGO_ENABLED: '0' }, signal });
    if (result === undefined) return 'controller-runtime is left out: there is no `go` on PATH to build it';
    return result.code === 0 ? undefined : `controller-runtime is left out: ${result.stderr}`;
  };
  console.error('bench: building the twin on controller-runtime');
  const missing = await build(0);
  if (missing !== undefined) return missing;
  await client.create(crdType, crdManifest(HelloApp), { fieldManager: 'bench' });
  const tuned = twin('tuned', { user: '', file, kubeconfig });
  const run = async (): Promise<MeasuredProcess> =>
    MeasuredProcess.start({ ...(await tuned.program(1)), env: env() }, signal);
  const deployments = await WatchObserver.start(client, owned.Deployment, 'default', signal);
  const subject = {
    ...{ apiVersion: HelloApp.apiVersion, kind: HelloApp.kind, metadata: { namespace: 'default', name: 'subject' } },
    spec: { image: 'registry.example.com/app:1' },
  };
  await established(client, subject);
  let running = await run();
  return {
    name: 'controller-runtime: a saved change of children, go build, restart',
    async change(round) {
      const seen = deployments.waitFor(
        'subject',
        ({ metadata }) => metadata.labels?.['app.kubernetes.io/managed-by'] === `twin-${String(round)}`,
      );
      const began = performance.now();
      const failed = await build(round);
      if (failed !== undefined) throw new Error(failed);
      await running.stop();
      running = await run();
      return (await seen) - began;
    },
    async stop() {
      await Promise.all([running.stop(), deployments.stop()]);
    },
  };
}

const noteType: ResourceType = {
  ...{ apiVersion: 'notes.example.com/v1', kind: 'Note', plural: 'notes', scope: 'Namespaced' },
};
const crdType: ResourceType = {
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  ...{ plural: 'customresourcedefinitions', scope: 'Cluster' },
};

/** Creates an object of a kind as soon as the server serves the kind. */
async function established(client: ApiClient, object: KubeObject): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.create(HelloApp.type, object, { fieldManager: 'bench' });
      return;
    } catch (error) {
      if (attempt === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
