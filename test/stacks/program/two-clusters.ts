import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseConfig } from '../../../stacks/config/parse';
import { program } from '../../../stacks/program';
import { DeploymentError, Engine, MemoryCluster, memoryClusters, type Result } from '../../support/pulumi-engine';
import { temporaryFolder } from '../../support/temporary-folder';

/** Two clusters, and an engine that knows both. */
export class TwoClusters {
  readonly folder = temporaryFolder('kindred-clusters-');
  readonly a = new MemoryCluster('https://a.test');
  readonly b = new MemoryCluster('https://b.test');
  readonly engine = this.newEngine();

  newEngine(): Engine {
    return new Engine({ providers: [memoryClusters(this.a, this.b)] });
  }

  /** Writes a kubeconfig into the folder. @returns its path */
  file(path: string, contexts: Readonly<Record<string, MemoryCluster>>): string {
    const name = join(this.folder, path);
    mkdirSync(dirname(name), { recursive: true });
    writeFileSync(name, MemoryCluster.kubeconfig(contexts));
    return name;
  }
}

/**
 * Gives each test of this file clusters of its own, and `KUBECONFIG` of the environment names a file with contexts `a` and
 * `b`.
 */
export function useTwoClusters(): () => TwoClusters {
  const surroundings = { ...process.env };
  let clusters: TwoClusters;
  beforeEach(() => {
    clusters = new TwoClusters();
    const { a, b } = clusters;
    process.env = { ...surroundings, KUBECONFIG: clusters.file('config', { a, b }) };
  });
  afterEach(() => {
    process.env = surroundings;
  });
  return () => clusters;
}

/** A stack of one kind. */
export const stack = (target: { readonly context?: string; readonly kubeconfig?: string }) => (): object => {
  const secretKeys = new Set(target.kubeconfig === undefined ? [] : ['kubeconfig']);
  return { ...program(parseConfig({ values: { kinds: '["HelloApp"]', ...target }, secretKeys })) };
};

/** Why a run fails. */
export async function failure(run: Promise<Result>): Promise<string> {
  const error: unknown = await run.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(DeploymentError);
  return (error as Error).message;
}

/** What stands, without the random part of a name: each installation has an owner of its own. */
const installed = ({ names }: MemoryCluster): readonly string[] =>
  names.map((name) => name.replace(/(?<=kindred-owner-)[0-9a-f-]{36}$/, 'id'));

/** What a stack leaves behind when it is destroyed. */
const stays = /^(CustomResourceDefinition|Namespace) /;

/** A stack, by the cluster that it is to go to. */
export type Way = (to: 'a' | 'b') => ReturnType<typeof stack>;

/** The title of a test of a platform that is asked to go to another cluster. */
export const MOVES =
  'is refused before anything changes; destroy and up, as it says, move the platform there, and back';

/** Expects that a platform does not go to another cluster by itself, and does by destroy and up. */
export async function expectMoves(clusters: TwoClusters, way: Way): Promise<void> {
  const { a, b, engine } = clusters;
  await engine.up(way('a'));
  const platform = installed(a);
  expect(platform).toEqual(expect.arrayContaining(['Deployment kindred-system/kindred-operator']));
  const uids = a.uids;

  for (const refused of [engine.preview(way('b')), engine.up(way('b'))]) {
    const message = await failure(refused);
    expect(message).toContain('leads to another cluster than the one that the platform is installed on');
    expect(message).toContain(`${b.uids['Namespace kube-system']} on b.test, and ${a.uids['Namespace kube-system']}`);
    expect(message).toMatch(/`pulumi destroy`.*`pulumi up`/);
    expect(message).not.toContain('secret-token');
  }
  expect([a.uids, b.names]).toEqual([uids, []]);
  // Back, as if nothing had been: but for the note of where it was asked to go.
  expect((await engine.up(way('a'))).summary.filter((line) => line !== 'update kindred-identity')).toEqual([]);
  expect((await engine.up(way('a'))).summary).toEqual([]);

  await failure(engine.up(way('b')));
  // Without the program, as pulumi does it: the state knows where the platform is.
  await engine.destroy();
  expect(a.names.filter((name) => !stays.test(name))).toEqual([]);
  await engine.up(way('b'));
  expect(installed(b)).toEqual(platform);
  expect((await engine.up(way('b'))).summary).toEqual([]);

  await failure(engine.up(way('a')));
  await engine.destroy();
  await engine.up(way('a'));
  expect(installed(a)).toEqual(platform);
  expect((await engine.up(way('a'))).summary).toEqual([]);
  expect(b.names.filter((name) => !stays.test(name))).toEqual([]);
}
