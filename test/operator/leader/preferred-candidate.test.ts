import { recordOf, withdrawPreference, type LeaseRecord } from '../../../operator/leader/lease';
import type { LeaderElectionOptions } from '../../../operator/leader/leader-election';
import { FakeApi } from '../support/fake-api';
import { ManualClock, settle } from '../support/manual-clock';
import { Candidate, leaseRef as ref } from './candidate';

describe('a candidate for whom a Lease is to be kept', () => {
  let api: FakeApi;
  let clock: ManualClock;
  let asked: string[];
  let leader: Candidate;
  let dev: Candidate;
  const lease = (): LeaseRecord => recordOf(api.objects.get(`Lease/${ref.namespace}/${ref.name}`)!);
  const preferred = (): string | undefined =>
    api.objects.get(`Lease/${ref.namespace}/${ref.name}`)?.metadata.annotations?.['kindred.dev/preferred-holder'];
  const start = (identity: string, options: Partial<LeaderElectionOptions> = {}): Candidate => {
    const candidate = new Candidate(identity, api, clock, options);
    candidate.elector.start();
    return candidate;
  };
  /** One that gives the Lease up when it is asked to. */
  const pod = (identity: string): Candidate => start(identity, { onAsked: (name) => asked.push(name) });

  beforeEach(async () => {
    api = new FakeApi();
    clock = new ManualClock();
    asked = [];
    leader = pod('pod_1');
    await settle();
    dev = start('dev_1', { preferred: 'dev' });
    await settle();
  });

  it('asks the leader, which is told once, leads on until it stops, and is followed by whoever asked', async () => {
    expect(preferred()).toBe('dev');
    await clock.advance(10_000);
    expect(asked).toEqual(['dev']);
    expect(leader.elector.isLeaderNow()).toBe(true);
    expect(dev.elector.isLeaderNow()).toBe(false);
    await leader.elector.stop();
    await clock.advance(500);
    expect(dev.elector.isLeaderNow()).toBe(true);
    expect(lease()).toMatchObject({ holderIdentity: 'dev_1', leaseTransitions: 1 });
  });

  it('gets a Lease that was given up, and so does the next one of its name, though others look at it first', async () => {
    const others = ['pod_2', 'pod_3'].map(pod);
    await settle();
    const tryAll = async (): Promise<void> => {
      for (const { elector } of others) elector.tryNow();
      await settle();
      expect(lease().holderIdentity).toBe('');
      await clock.advance(500);
    };
    await leader.elector.stop();
    await tryAll();
    expect(lease().holderIdentity).toBe('dev_1');
    start('dev_2', { preferred: 'dev' });
    await clock.advance(60_000);
    expect(lease().holderIdentity).toBe('dev_1');
    await dev.elector.stop();
    await tryAll();
    expect(lease().holderIdentity).toBe('dev_2');
  });

  it('leaves it to anybody once nobody is preferred any more', async () => {
    await leader.elector.stop();
    await clock.advance(500);
    const next = pod('pod_2');
    await settle();
    await dev.elector.stop();
    await withdrawPreference(api, ref, 'somebody else', { fieldManager: 'test' });
    expect(preferred()).toBe('dev');
    await withdrawPreference(api, ref, 'dev', { fieldManager: 'test' });
    expect(preferred()).toBeUndefined();
    next.elector.tryNow();
    await settle();
    expect(next.elector.isLeaderNow()).toBe(true);
  });

  it('that was killed is waited for as long as a Lease lasts, and the next leader is asked no more', async () => {
    await dev.elector.stop();
    await clock.advance(4_000);
    expect(asked).toEqual(['dev']);
    const next = pod('pod_2');
    await leader.elector.stop();
    await clock.advance(14_000);
    expect(lease().holderIdentity).toBe('');
    // It has read the Lease up to two seconds later, and looks at it every two seconds.
    await clock.advance(5_000);
    expect(next.elector.isLeaderNow()).toBe(true);
    expect(preferred()).toBeUndefined();
    await clock.advance(10_000);
    expect(asked).toEqual(['dev']);
  });

  it('that leads gives the Lease up for nobody, and who comes second does not ask', async () => {
    await leader.elector.stop();
    await clock.advance(500);
    const second = start('other_1', { preferred: 'other' });
    await clock.advance(30_000);
    expect(dev.elector.isLeaderNow()).toBe(true);
    expect(dev.log).not.toContain('lost');
    expect(preferred()).toBe('dev');
    await dev.elector.stop();
    await withdrawPreference(api, ref, 'dev', { fieldManager: 'test' });
    await clock.advance(500);
    expect(second.elector.isLeaderNow()).toBe(true);
    expect(preferred()).toBe('other');
  });

  it('is not heard by a leader of an earlier version, and gets the Lease when that ends', async () => {
    await dev.elector.stop();
    await leader.elector.stop();
    await withdrawPreference(api, ref, 'dev', { fieldManager: 'test' });
    const old = start('old_1');
    await settle();
    const again = start('dev_2', { preferred: 'dev' });
    await clock.advance(30_000);
    expect(old.elector.isLeaderNow()).toBe(true);
    await old.elector.stop();
    await clock.advance(500);
    expect(again.elector.isLeaderNow()).toBe(true);
  });

  it('is heard by a leader that does not know yet that it leads', async () => {
    await dev.elector.stop();
    await leader.elector.stop();
    await withdrawPreference(api, ref, 'dev', { fieldManager: 'test' });
    // It holds the Lease, but the answer that says so is lost.
    api.fate = ({ verb }) => (verb === 'update' ? 'lost' : 'pass');
    const unaware = pod('pod_2');
    await settle();
    expect(lease().holderIdentity).toBe('pod_2');
    expect(unaware.elector.isLeaderNow()).toBe(false);
    api.fate = () => 'pass';
    start('dev_2', { preferred: 'dev' });
    await settle();
    expect(preferred()).toBe('dev');
    await clock.advance(5_000);
    expect(unaware.elector.isLeaderNow()).toBe(true);
    expect(asked).toEqual(['dev']);
  });
});
