import { TransportError } from '../../../operator/client/errors';
import { electionTimes, leaseType, recordOf, type LeaseRecord } from '../../../operator/leader/lease';
import { NotLeaderError } from '../../../operator/leader/leader-election';
import { Candidate, leaseRef as ref } from './candidate';
import { apiError, FakeApi } from '../support/fake-api';
import { ManualClock, settle } from '../support/manual-clock';

describe('LeaderElector', () => {
  let api: FakeApi;
  let clock: ManualClock;
  let a: Candidate;

  const lease = (): LeaseRecord => recordOf(api.objects.get(`Lease/${ref.namespace}/${ref.name}`)!);

  beforeEach(async () => {
    api = new FakeApi();
    clock = new ManualClock();
    a = new Candidate('a_1', api, clock);
    a.elector.start();
    await settle();
  });

  it('creates the Lease and leads', () => {
    expect(a.log).toEqual(['status false', 'status true', 'elected']);
    expect(a.elector.isLeaderNow()).toBe(true);
    expect(a.elector.remainingMs()).toBe(10_000);
    expect(lease()).toEqual({
      holderIdentity: 'a_1',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    });
  });

  it('renews every two seconds with one request, based on what it wrote last', async () => {
    const before = api.seen.length;
    await clock.advance(6000);
    expect(api.seen.slice(before).map((request) => request.verb)).toEqual(['update', 'update', 'update']);
    expect(lease().renewTime).toBe('2026-01-01T00:00:06.000000Z');
    expect(lease().acquireTime).toBe('2026-01-01T00:00:00.000000Z');
    expect(a.elector.remainingMs()).toBe(10_000);
  });

  it('makes a candidate wait for the lease to stand still, by its own clock', async () => {
    const otherClock = new ManualClock();
    otherClock.stepWall(-5 * 365 * 24 * 3600 * 1000);
    const b = new Candidate('b_1', api, otherClock);
    b.elector.start();
    await settle();
    expect(b.log).toEqual(['status false', 'sees a_1']);
    api.fate = (request) => (request.verb === 'update' && isBy('a_1', request.body) ? apiError(503, 'Down') : 'pass');
    await otherClock.advance(14_999);
    expect(lease().holderIdentity).toBe('a_1');
    expect(b.elector.isLeaderNow()).toBe(false);
    await otherClock.advance(2000);
    expect(b.elector.isLeaderNow()).toBe(true);
    expect(lease()).toMatchObject({ holderIdentity: 'b_1', leaseTransitions: 1 });
  });

  it('does not take a Lease that is renewed all the while', async () => {
    const b = new Candidate('b_1', api, clock);
    b.elector.start();
    await clock.advance(120_000);
    expect(b.elector.isLeaderNow()).toBe(false);
    expect(a.elector.isLeaderNow()).toBe(true);
    expect(lease().leaseTransitions).toBe(0);
  });

  describe('a candidate that is told to try now', () => {
    let b: Candidate;
    beforeEach(async () => {
      b = new Candidate('b_1', api, clock);
      b.elector.start();
      await settle();
    });

    it('leads as soon as the leader has given the Lease up, and not before', async () => {
      b.elector.tryNow();
      await settle();
      expect(b.elector.isLeaderNow()).toBe(false);
      await a.elector.stop();
      b.elector.tryNow();
      await settle();
      expect(b.elector.isLeaderNow()).toBe(true);
      expect(lease()).toMatchObject({ holderIdentity: 'b_1', leaseTransitions: 1 });
    });

    it('tries again after an attempt that has read the Lease before it was given up', async () => {
      await clock.advance(3_900);
      await a.elector.stop();
      const before = api.seen.length;
      b.elector.tryNow();
      b.elector.tryNow();
      await settle();
      expect(b.elector.isLeaderNow()).toBe(true);
      // One attempt reads and takes it; nothing else was sent twice.
      expect(api.seen.slice(before).map(({ verb }) => verb)).toEqual(['get', 'update']);
      await clock.advance(2000);
      expect(b.elector.isLeaderNow()).toBe(true);
    });

    it('changes nothing of a leader, nor of a process that has stopped', async () => {
      const before = api.seen.length;
      a.elector.tryNow();
      await b.elector.stop();
      b.elector.tryNow();
      await settle();
      expect(api.seen).toHaveLength(before);
      expect(a.elector.isLeaderNow()).toBe(true);
    });
  });

  it('loses before another can hold the Lease when the API is out of reach, and stays lost', async () => {
    const b = new Candidate('b_1', api, clock);
    b.elector.start();
    api.fate = (request) =>
      request.verb !== 'get' && isBy('a_1', request.body) ? new TransportError('refused', 'T') : 'pass';
    await clock.advance(9_999);
    expect(a.elector.isLeaderNow()).toBe(true);
    await clock.advance(1);
    expect(a.elector.isLeaderNow()).toBe(false);
    expect(a.log.slice(-2)).toEqual(['status false', 'lost']);
    expect(a.lostBy?.message).toMatch(/Lease kindred-system\/kindred.*no renewal succeeded within 10000 ms/);
    expect(lease().holderIdentity).toBe('a_1');
    await clock.advance(10_000);
    expect(b.elector.isLeaderNow()).toBe(true);
    api.fate = () => 'pass';
    await clock.advance(60_000);
    expect(a.elector.isLeaderNow()).toBe(false);
    expect(a.log.filter((line) => line === 'lost')).toHaveLength(1);
  });

  it('loses at the deadline even while a request hangs', async () => {
    api.fate = () => 'hang';
    await clock.advance(10_000);
    expect(a.log).toContain('lost');
  });

  it('gets over a failure that passes, within the deadline', async () => {
    let failures = 3;
    api.fate = () => (failures-- > 0 ? apiError(500, 'InternalError') : 'pass');
    await clock.advance(30_000);
    expect(a.log).toEqual(['status false', 'status true', 'elected']);
    expect(a.elector.isLeaderNow()).toBe(true);
  });

  it('counts from the start of the renewal, not from its answer', async () => {
    let lost = 0;
    api.fate = (request) => (request.verb === 'update' && lost++ === 0 ? 'stored-hang' : 'pass');
    // The renewal begins at 2 s, is stored, and its answer never comes; the next one begins at 9 s.
    await clock.advance(8_999);
    expect(a.elector.remainingMs()).toBe(1001);
    await clock.advance(1);
    expect(a.elector.remainingMs()).toBe(10_000);
  });

  it('takes a conflict with its own lost renewal for what it is', async () => {
    let first = true;
    api.fate = (request) => {
      const fate = request.verb === 'update' && first ? 'lost' : 'pass';
      if (request.verb === 'update') first = false;
      return fate;
    };
    await clock.advance(2000);
    expect(a.elector.remainingMs()).toBe(10_000);
    expect(lease()).toMatchObject({ holderIdentity: 'a_1', leaseTransitions: 0 });
  });

  it('loses at once when the Lease turns out to be held by another, or freed', async () => {
    api.edit(leaseType, ref, { holderIdentity: 'thief' });
    await clock.advance(2000);
    expect(a.log).toContain('lost');
    expect(a.lostBy?.message).toContain('held by thief');
    expect(lease().holderIdentity).toBe('thief');
  });

  it('bears edits of the metadata and keeps foreign fields of the spec', async () => {
    api.edit(leaseType, ref, { strategy: 'somebody' });
    await clock.advance(2000);
    expect(a.elector.isLeaderNow()).toBe(true);
    expect(api.objects.get(`Lease/${ref.namespace}/${ref.name}`)?.['spec']).toMatchObject({ strategy: 'somebody' });
  });

  it('creates a deleted Lease anew', async () => {
    api.objects.clear();
    await clock.advance(2000);
    expect(lease().holderIdentity).toBe('a_1');
    expect(a.elector.remainingMs()).toBe(10_000);
  });

  it('lets one of two candidates for a free Lease win', async () => {
    await a.elector.stop();
    const b = new Candidate('b_1', api, clock);
    const c = new Candidate('c_1', api, clock);
    b.elector.start();
    c.elector.start();
    await settle();
    expect([b.elector.isLeaderNow(), c.elector.isLeaderNow()].filter(Boolean)).toHaveLength(1);
  });

  describe('a stopped process', () => {
    it('refuses writes on waking up, before any timer fired', async () => {
      clock.pause(10_001);
      expect(a.elector.isLeaderNow()).toBe(false);
      expect(() => a.elector.assertLeader()).toThrow(NotLeaderError);
      expect(() => a.elector.assertLeader()).toThrow(/a_1 does not lead.*last renewal began more than 10000 ms ago/);
      const before = api.seen.length;
      await clock.advance(0);
      expect(a.log).toContain('lost');
      expect(api.seen).toHaveLength(before);
    });

    it('does not come back by a renewal whose answer waited in the socket', async () => {
      let answer!: () => void;
      const late = new Promise<void>((resolve) => (answer = resolve));
      const update = api.update.bind(api);
      api.update = async (...given) => {
        const stored = await update(...given);
        await late;
        return stored;
      };
      await clock.advance(2000);
      clock.pause(11_000);
      answer();
      await settle();
      expect(a.elector.isLeaderNow()).toBe(false);
      expect(a.log).toContain('lost');
    });

    it('is not elected by an answer older than the deadline, but by the next renewal', async () => {
      await a.elector.stop();
      const create = api.update.bind(api);
      let calls = 0;
      api.update = async (...given) => {
        const stored = await create(...given);
        if (++calls === 1) clock.pause(12_000);
        return stored;
      };
      const b = new Candidate('b_1', api, clock);
      b.elector.start();
      await settle();
      expect(b.log).toEqual(['status false']);
      await clock.advance(2000);
      expect(b.log).toEqual(['status false', 'status true', 'elected']);
    });
  });

  describe('clock jumps', () => {
    it('does not mind the wall clock going back', async () => {
      clock.stepWall(-3_600_000);
      expect(a.elector.isLeaderNow()).toBe(true);
      await clock.advance(20_000);
      expect(a.elector.isLeaderNow()).toBe(true);
    });

    it('pauses writes when the wall clock ran past the deadline (the machine was suspended), until it renewed', async () => {
      clock.stepWall(3_600_000);
      expect(a.elector.isLeaderNow()).toBe(false);
      await clock.advance(2000);
      expect(a.elector.isLeaderNow()).toBe(true);
      expect(a.log).not.toContain('lost');
    });
  });

  describe('stop', () => {
    it('gives the Lease up, so that another has it at its next try', async () => {
      const b = new Candidate('b_1', api, clock);
      b.elector.start();
      await clock.advance(3000);
      await a.elector.stop();
      expect(a.elector.isLeaderNow()).toBe(false);
      expect(lease()).toEqual({
        holderIdentity: '',
        leaseDurationSeconds: 1,
        acquireTime: '2026-01-01T00:00:03.000000Z',
        renewTime: '2026-01-01T00:00:03.000000Z',
        leaseTransitions: 0,
      });
      await clock.advance(2000);
      expect(b.elector.isLeaderNow()).toBe(true);
      expect(lease().leaseTransitions).toBe(1);
      expect(a.log).not.toContain('lost');
    });

    it('refuses writes from its very call', () => {
      void a.elector.stop();
      expect(() => a.elector.assertLeader()).toThrow(/the election was stopped/);
    });

    it('gives up a Lease that a renewal under way got after all', async () => {
      api.fate = (request) => (request.verb === 'update' && !isBy('', request.body) ? 'stored-hang' : 'pass');
      await clock.advance(2000);
      await a.elector.stop();
      expect(lease().holderIdentity).toBe('');
    });

    it('tries once more to give it up when its own late renewal got in between', async () => {
      let edits = 1;
      api.fate = (request) => {
        if (request.verb === 'update' && edits-- > 0) api.edit(leaseType, ref, { renewTime: 'later' });
        return 'pass';
      };
      await a.elector.stop();
      expect(lease().holderIdentity).toBe('');
    });

    it('leaves the Lease of another alone, and bears an API that is gone', async () => {
      const b = new Candidate('b_1', api, clock);
      b.elector.start();
      await settle();
      await b.elector.stop();
      expect(lease().holderIdentity).toBe('a_1');
      api.fate = () => new TransportError('refused', 'T');
      await expect(a.elector.stop()).resolves.toBeUndefined();
      expect(clock.timerCount).toBe(0);
    });

    it('does not touch the Lease after it was lost', async () => {
      api.fate = () => apiError(500, 'InternalError');
      await clock.advance(11_000);
      api.fate = () => 'pass';
      const before = api.seen.length;
      await a.elector.stop();
      expect(api.seen).toHaveLength(before);
    });
  });

  it('refuses to start twice and times that are not safe', () => {
    expect(() => a.elector.start()).toThrow(/started already/);
    expect(() => electionTimes({ leaseDurationMs: 10_000 })).toThrow(/leaseDuration must exceed renewDeadline/);
    expect(() => electionTimes({ renewDeadlineMs: 2400 })).toThrow(/1\.2 \* retryPeriod/);
    expect(() => electionTimes({ retryPeriodMs: 0 })).toThrow(/positive/);
    expect(() => electionTimes({ leaseDurationMs: Number.NaN })).toThrow(RangeError);
    expect(new Candidate('x', api, clock, { identity: undefined as never }).elector.identity).toMatch(
      /^.+_[0-9a-f-]{36}$/,
    );
  });
});

function isBy(holder: string, body: unknown): boolean {
  return recordOf(body as never).holderIdentity === holder;
}
