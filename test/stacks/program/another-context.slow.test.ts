import { MemoryCluster, plainValues } from '../../support/pulumi-engine';
import { MOVES, expectMoves, failure, stack, useTwoClusters } from './two-clusters';
import type { Way } from './two-clusters';

// The gate keeps the way by context, and a context that is not there: another-context.test.ts.

const clusters = useTwoClusters();

const byContext: readonly [string, Way] = ['by context', (to) => stack({ context: to })];
const otherWays: readonly (readonly [string, Way])[] = [
  ['by kubeconfig', (to) => stack({ kubeconfig: `${MemoryCluster.kubeconfig({ it: clusters()[to] })}\n` })],
  [
    'by environment',
    (to) => {
      const program = stack({ context: 'it' });
      return () => {
        process.env['KUBECONFIG'] = clusters().file(`${to}/config`, { it: clusters()[to] });
        return program();
      };
    },
  ],
];

describe.each(otherWays)('another cluster, %s', (_, way) => {
  test(MOVES, () => expectMoves(clusters(), way));
});

describe.each([byContext, ...otherWays])('another cluster, %s', (_, way) => {
  test("of which another stack has a platform loses nothing of it, and this one's is destroyed where it is", async () => {
    const { b, engine } = clusters();
    const other = clusters().newEngine();
    await other.up(way('b'));
    const theirs = b.uids;
    await engine.up(way('a'));
    await failure(engine.up(way('b')));
    await engine.destroy();
    expect(b.uids).toEqual(theirs);
    expect((await other.up(way('b'))).summary).toEqual([]);
  });

  test('a run that was interrupted goes on where it was, and nowhere else', async () => {
    const { a, b, engine } = clusters();
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
    const { a, engine } = clusters();
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
    const { a, b, engine, folder } = clusters();
    await engine.up(stack({ context: 'a' }));
    process.env['KUBECONFIG'] = `${clusters().file('else/b', { b })}:${clusters().file('else/where', { b, mine: a })}`;
    expect((await engine.up(stack({ context: 'mine' }))).summary).toEqual([]);
    expect(engine.export()).not.toContain(folder);
  });

  test('has its credentials in the state only as secrets', async () => {
    const { engine } = clusters();
    const result = await engine.up(stack({ context: 'a' }));
    expect(result.plainText()).not.toContain('secret-token');
    expect(JSON.stringify(plainValues(engine.state.resource('kindred-cluster').inputs))).toContain('secret-token');
  });
});

describe('a cluster that cannot be told', () => {
  test('one that does not answer fails preview and up, and loses nothing', async () => {
    const { a, engine } = clusters();
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
