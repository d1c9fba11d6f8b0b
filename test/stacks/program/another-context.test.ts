import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseConfig } from '../../../stacks/config';
import { program } from '../../../stacks/program';
import { DeploymentError, Engine, MemoryCluster, memoryClusters, plainValues } from '../../support/pulumi-engine';
import type { Result } from '../../support/pulumi-engine';
import { temporaryFolder } from '../../support/temporary-folder';

// Several runs of the SDK a test, on whatever machine.
jest.setTimeout(120_000);

const surroundings = { ...process.env };
let folder: string;
let a: MemoryCluster;
let b: MemoryCluster;
let engine: Engine;

beforeEach(() => {
  folder = temporaryFolder('kindred-clusters-');
  [a, b] = [new MemoryCluster('https://a.test'), new MemoryCluster('https://b.test')];
  engine = newEngine();
  process.env = { ...surroundings, KUBECONFIG: file('config', { a, b }) };
});

afterEach(() => {
  process.env = surroundings;
});

const newEngine = (): Engine => new Engine({ providers: [memoryClusters(a, b)] });

function file(path: string, contexts: Readonly<Record<string, MemoryCluster>>, credential?: string): string {
  const name = join(folder, path);
  mkdirSync(dirname(name), { recursive: true });
  writeFileSync(name, MemoryCluster.kubeconfig(contexts, credential));
  return name;
}

/** A stack of one kind. */
const stack =
  (target: { readonly context?: string; readonly kubeconfig?: string }, others: Record<string, string> = {}) =>
  () => {
    const secretKeys = new Set(target.kubeconfig === undefined ? [] : ['kubeconfig']);
    return { ...program(parseConfig({ values: { kinds: '["HelloApp"]', ...target, ...others }, secretKeys })) };
  };

async function failure(run: Promise<Result>): Promise<string> {
  const error: unknown = await run.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(DeploymentError);
  return (error as Error).message;
}

/** What a stack leaves behind when it is destroyed. */
const stays = /^(CustomResourceDefinition|Namespace) /;

const ways: readonly (readonly [string, (to: 'a' | 'b') => ReturnType<typeof stack>])[] = [
  ['by context', (to) => stack({ context: to })],
  ['by kubeconfig', (to) => stack({ kubeconfig: `${MemoryCluster.kubeconfig({ it: to === 'a' ? a : b })}\n` })],
  [
    'by environment',
    (to) => {
      const program = stack({ context: 'it' });
      return () => {
        process.env['KUBECONFIG'] = file(`${to}/config`, { it: to === 'a' ? a : b });
        return program();
      };
    },
  ],
];

describe.each(ways)('another cluster, %s', (_, way) => {
  test('is refused before anything changes; destroy and up, as it says, move the platform there, and back', async () => {
    await engine.up(way('a'));
    const platform = a.names;
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
    expect(b.names).toEqual(platform);
    expect((await engine.up(way('b'))).summary).toEqual([]);

    await failure(engine.up(way('a')));
    await engine.destroy();
    await engine.up(way('a'));
    expect(a.names).toEqual(platform);
    expect((await engine.up(way('a'))).summary).toEqual([]);
    expect(b.names.filter((name) => !stays.test(name))).toEqual([]);
  });

  test("of which another stack has a platform loses nothing of it, and this one's is destroyed where it is", async () => {
    const other = newEngine();
    await other.up(way('b'));
    const theirs = b.uids;
    await engine.up(way('a'));
    await failure(engine.up(way('b')));
    await engine.destroy();
    expect(b.uids).toEqual(theirs);
    expect((await other.up(way('b'))).summary).toEqual([]);
  });

  test('a run that was interrupted goes on where it was, and nowhere else', async () => {
    await engine.up(way('a'), { interrupt: { at: 25, when: 'before' }, parallel: 1 }).catch(() => undefined);
    expect(a.names.length).toBeGreaterThan(2);
    expect(await failure(engine.up(way('b')))).toContain('another cluster');
    expect(b.names).toEqual([]);
    await engine.up(way('a'));
    expect(a.names).toEqual(expect.arrayContaining(['Deployment kindred-system/kindred-operator']));
    expect((await engine.up(way('a'))).summary).toEqual([]);
  });
});

describe('the same cluster', () => {
  const isUpdate = (line: string): boolean => /^update kindred-(cluster|identity|namespace|retained)$/.test(line);

  test('with another authority, server name, user or address keeps all that is installed', async () => {
    await engine.up(stack({ context: 'a' }));
    const uids = a.uids;
    const content = JSON.parse(MemoryCluster.kubeconfig({ a })) as { clusters: { cluster: object }[] };
    content.clusters[0]!.cluster = {
      ...content.clusters[0]!.cluster,
      ...{ 'certificate-authority-data': 'bmV3', 'tls-server-name': 'api.test' },
    };
    const kubeconfig = `${JSON.stringify(content)}\n`;
    const changed = await engine.up(stack({ kubeconfig }));
    expect(changed.summary).toHaveLength(4);
    expect(changed.summary.every(isUpdate)).toBe(true);
    expect(a.uids).toEqual(uids);
    expect((await engine.up(stack({ kubeconfig }))).summary).toEqual([]);
    expect((await engine.up(stack({ context: 'a' }))).summary.every(isUpdate)).toBe(true);
  });

  test('from another machine, by another path, context and order of files, changes nothing', async () => {
    await engine.up(stack({ context: 'a' }));
    process.env['KUBECONFIG'] = `${file('else/b', { b })}:${file('else/where', { b, mine: a })}`;
    expect((await engine.up(stack({ context: 'mine' }))).summary).toEqual([]);
    expect(engine.export()).not.toContain(folder);
  });

  test('has its credentials in the state only as secrets', async () => {
    const result = await engine.up(stack({ context: 'a' }));
    expect(result.plainText()).not.toContain('secret-token');
    expect(JSON.stringify(plainValues(engine.state.resource('kindred-cluster').inputs))).toContain('secret-token');
  });
});

describe('a cluster that cannot be told', () => {
  test('a context that is not there fails the preview, on an existing stack too, with those that there are', async () => {
    const message = `there is no context "nosuch" in ${join(folder, 'config')}; there are a, b`;
    expect(await failure(engine.preview(stack({ context: 'nosuch' })))).toContain(message);
    await engine.up(stack({ context: 'a' }));
    expect(await failure(engine.up(stack({ context: 'nosuch' })))).toContain(message);
  });

  test('one that does not answer fails preview and up, and loses nothing', async () => {
    await engine.up(stack({ context: 'a' }));
    const uids = a.uids;
    a.answers = false;
    expect(await failure(engine.preview(stack({ context: 'a' })))).toContain('cluster is unreachable: https://a.test');
    expect(await failure(engine.up(stack({ context: 'a' })))).toContain('cluster is unreachable: https://a.test');
    a.answers = true;
    expect((await engine.up(stack({ context: 'a' }))).summary).toEqual([]);
    expect(a.uids).toEqual(uids);
  });
});
