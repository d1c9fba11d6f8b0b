import { HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import type { AnyKind } from '../../../constructs/kind/kind';
import { owned } from '../../../constructs/kube/resource-type';
import { NotLeaderError } from '../../../operator/leader/leader-election';
import { ref } from '../reconcile/harness';
import { RunningController } from './running-controller';

const { Deployment } = owned;

describe('how a reconcile is counted', () => {
  it('a contest is an error, but no terminal one: it is tried again by itself', async () => {
    const running = new RunningController(HelloApp);
    running.start();
    await running.add('web', { image: 'i' });
    await running.settle();
    for (let i = 0; i < 8; i++) {
      running.server.edit(Deployment, ref('web'), (live) => ({
        ...live,
        spec: { ...(live.spec as object), replicas: 9 },
      }));
      await running.settle();
    }
    expect(running.conditions('web')[0]).toBe('Ready=False ErrContested');
    expect(running.results).toContain('error');
    expect(running.results).not.toContain('terminal');
    await running.stop();
  });

  it('a Lease that was lost is none, however often it keeps from writing: nothing is said of it but to who debugs', async () => {
    const running = new RunningController(HelloApp);
    running.server.before = ({ verb, type }) => {
      if (verb !== 'GET' && type === Deployment) throw new NotLeaderError('refused to write');
    };
    running.start();
    await running.add('web', { image: 'i' });
    await running.settle();
    // More often than a cache may be behind before that is worth a warning.
    for (let i = 0; i < 15; i++) {
      await running.clock.advance(60_000);
      await running.settle();
    }
    await running.stop();
    expect(running.queue.failures('object:default/web')).toBeGreaterThan(12);
    expect(new Set(running.results)).toEqual(new Set(['requeue']));
    expect([running.complaints(), running.events]).toEqual([[], []]);
    expect(running.server.writes.filter((write) => write.startsWith('APPLY'))).toEqual([]);
    expect(running.log).toContainEqual(expect.objectContaining({ level: 'debug', reason: 'NotLeader' }));
  });
});

describe('shared children that cannot be rendered', () => {
  const broken: AnyKind = {
    ...MicroServiceDeploy,
    shared: MicroServiceDeploy.shared.map((group) => ({
      ...group,
      children(): void {
        throw new Error('a bug of the kind');
      },
    })),
  };
  let running: RunningController;

  beforeEach(async () => {
    running = new RunningController(broken);
    running.start();
    await running.add('m', { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i' });
    await running.settle();
  });

  afterEach(() => running.stop());

  it('fail the objects that name the key, whose status says why', () => {
    expect(running.conditions('m')).toEqual(['Ready=False ErrRender', 'Stalled=True ErrRender']);
    expect(running.message('m')).toContain('a bug of the kind');
    expect(running.live(Deployment, 'shop-1')).toBeDefined();
  });

  it('are not rendered again before something changes', () => {
    expect([running.queue.depth, running.queue.delayedCount]).toEqual([0, 0]);
    expect(running.results).toEqual(['error', 'terminal', 'error', 'terminal']);
  });
});
