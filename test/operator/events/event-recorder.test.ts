import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { TransportError } from '../../../operator/client/errors';
import { EventRecorder, type EventInput, type EventRecorderOptions } from '../../../operator/events/event-recorder';
import { createLogger } from '../../../operator/process/logger';
import { apiError, FakeApi, type Fate } from '../support/fake-api';
import { ManualClock, settle } from '../support/manual-clock';

const subject = (name: string, namespace?: string): KubeObject => ({
  apiVersion: 'apps.anupam.com/v1',
  kind: 'HelloApp',
  metadata: { name, uid: `uid-${name}`, ...(namespace === undefined ? {} : { namespace }) },
});
const synced: EventInput = { type: 'Normal', reason: 'Synced', action: 'Reconcile', note: 'all is well' };
const minute = 60_000;

describe('EventRecorder', () => {
  let api: FakeApi;
  let clock: ManualClock;
  let outcomes: string[];
  let recorder: EventRecorder;
  let random: number;

  const make = (options: Partial<EventRecorderOptions> = {}): EventRecorder =>
    new EventRecorder({
      client: api,
      clock,
      // Small numbers that all differ, so that names do.
      random: () => (random += 1.5e-6),
      logger: createLogger({ level: 'silent' }),
      reportingInstance: 'pod_1',
      onOutcome: (outcome) => outcomes.push(outcome),
      ...options,
    });
  const stored = (): KubeObject[] => [...api.objects.values()];

  beforeEach(() => {
    api = new FakeApi();
    clock = new ManualClock();
    outcomes = [];
    random = 0;
    recorder = make();
  });

  it('creates an event as events.k8s.io/v1 wants it', async () => {
    recorder.record(subject('web', 'shop'), { ...synced, related: subject('other', 'shop') });
    expect(api.seen).toEqual([]);
    await settle();
    expect(stored()).toEqual([
      {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: {
          name: `web.${(BigInt(clock.wallMs()) * 1_000_000n + 1n).toString(16)}`,
          namespace: 'shop',
          resourceVersion: '1',
        },
        eventTime: '2026-01-01T00:00:00.000000Z',
        reportingController: 'kindred.dev/operator',
        reportingInstance: 'pod_1',
        type: 'Normal',
        reason: 'Synced',
        action: 'Reconcile',
        note: 'all is well',
        regarding: {
          apiVersion: 'apps.anupam.com/v1',
          kind: 'HelloApp',
          name: 'web',
          namespace: 'shop',
          uid: 'uid-web',
        },
        related: {
          apiVersion: 'apps.anupam.com/v1',
          kind: 'HelloApp',
          name: 'other',
          namespace: 'shop',
          uid: 'uid-other',
        },
      },
    ]);
    expect(outcomes).toEqual(['written']);
  });

  it('puts events of cluster-scoped objects into default, under names the server takes', async () => {
    recorder.record(subject('System:Odd'), synced);
    recorder.record(subject('x'.repeat(253)), synced);
    await settle();
    const names = stored().map((event) => event.metadata);
    expect(names.map((meta) => meta.namespace)).toEqual(['default', 'default']);
    expect(names[0]?.name).toMatch(/^system-odd\.[0-9a-f]+$/);
    expect(names[1]?.name).toHaveLength(253);
    expect(stored()[0]?.['regarding']).not.toHaveProperty('namespace');
  });

  it('cuts texts to the bytes the server takes, between characters', async () => {
    const long = 'ä'.repeat(2000);
    recorder = make({ reportingInstance: long });
    recorder.record(subject('web', 'shop'), { type: 'Warning', reason: long, action: '', note: long });
    await settle();
    const [event] = stored();
    expect(event?.['note']).toBe(`${'ä'.repeat(510)}…`);
    for (const field of ['reason', 'action', 'reportingInstance']) {
      expect(event?.[field]).toBe(`${'ä'.repeat(62)}…`);
    }
  });

  describe('repetitions', () => {
    it('become a series: the first is patched at once, later ones every 6 minutes at most', async () => {
      const web = subject('web', 'shop');
      recorder.record(web, synced);
      await settle();
      await clock.advance(1000);
      recorder.record(web, synced);
      await settle();
      expect(api.seen.map((request) => request.verb)).toEqual(['create', 'patch']);
      expect(api.seen[1]?.body).toEqual({ series: { count: 2, lastObservedTime: '2026-01-01T00:00:01.000000Z' } });
      for (let i = 0; i < 50; i++) recorder.record(web, synced);
      await clock.advance(5 * minute);
      expect(api.count('patch')).toBe(1);
      await clock.advance(2 * minute);
      expect(api.count('patch')).toBe(2);
      expect(stored()).toMatchObject([{ series: { count: 52, lastObservedTime: '2026-01-01T00:00:01.000000Z' } }]);
      await clock.advance(20 * minute);
      expect(api.count('patch')).toBe(2);
    });

    it('differ by type, reason, action, note and subject', async () => {
      const web = subject('web', 'shop');
      recorder.record(web, synced);
      recorder.record(web, { ...synced, type: 'Warning' });
      recorder.record(web, { ...synced, reason: 'Other' });
      recorder.record(web, { ...synced, action: 'Other' });
      recorder.record(web, { ...synced, note: 'other' });
      recorder.record(subject('db', 'shop'), synced);
      recorder.record(web, synced);
      await settle();
      expect(api.count('create')).toBe(6);
    });

    it('before the first was written go into the creation', async () => {
      for (let i = 0; i < 3; i++) recorder.record(subject('web', 'shop'), synced);
      await settle();
      expect(api.seen.map((request) => request.verb)).toEqual(['create']);
      expect(stored()).toMatchObject([{ series: { count: 3 } }]);
    });

    it('after 30 quiet minutes are a new event', async () => {
      recorder.record(subject('web', 'shop'), synced);
      await clock.advance(31 * minute);
      expect(clock.timerCount).toBe(0);
      recorder.record(subject('web', 'shop'), synced);
      await settle();
      expect(api.count('create')).toBe(2);
    });

    it('of an event that the server has forgotten create it anew', async () => {
      recorder.record(subject('web', 'shop'), synced);
      await settle();
      api.objects.clear();
      recorder.record(subject('web', 'shop'), synced);
      await settle();
      expect(api.seen.map((request) => request.verb)).toEqual(['create', 'patch', 'create']);
      expect(stored()).toMatchObject([{ series: { count: 2 } }]);
    });
  });

  it('lets one object write 25 events, then one in 5 minutes; others are not held back', async () => {
    const noisy = subject('noisy', 'shop');
    for (let i = 0; i < 40; i++) recorder.record(noisy, { ...synced, note: `note ${i}` });
    recorder.record(subject('quiet', 'shop'), synced);
    await settle(80);
    expect(api.count('create')).toBe(26);
    expect(outcomes.filter((outcome) => outcome === 'dropped_spam')).toHaveLength(15);
    await clock.advance(5 * minute);
    recorder.record(noisy, { ...synced, note: 'later' });
    recorder.record(noisy, { ...synced, note: 'later still' });
    await settle();
    expect(api.count('create')).toBe(27);
  });

  it('drops beyond the bound of its queue, and forgets the oldest series', async () => {
    recorder = make({ maxQueued: 3, maxSeries: 2 });
    for (let i = 0; i < 5; i++) recorder.record(subject(`web-${i}`, 'shop'), synced);
    await settle();
    expect(outcomes.toSorted()).toEqual(['dropped_full', 'dropped_full', 'written', 'written', 'written']);
    recorder.record(subject('web-0', 'shop'), synced);
    await settle();
    expect(api.count('create')).toBe(4);
  });

  describe('failures', () => {
    const fail = (...fates: Fate[]): void => {
      api.fate = () => fates.shift() ?? 'pass';
    };

    it('that pass are tried again after 10 s, five times in all', async () => {
      fail(new TransportError('refused', 'T'), apiError(503, 'ServiceUnavailable'));
      recorder.record(subject('web', 'shop'), synced);
      await clock.advance(21_000);
      expect(outcomes).toEqual(['written']);
      api.fate = () => apiError(500, 'InternalError');
      recorder.record(subject('db', 'shop'), synced);
      await clock.advance(10 * minute);
      expect(api.count('create')).toBe(3 + 5);
      expect(outcomes).toEqual(['written', 'failed']);
    });

    it('that are final are not tried again, but the next occurrence is', async () => {
      fail(apiError(422, 'Invalid'));
      recorder.record(subject('web', 'shop'), synced);
      await clock.advance(minute);
      expect(outcomes).toEqual(['failed']);
      recorder.record(subject('web', 'shop'), synced);
      await settle();
      expect(outcomes).toEqual(['failed', 'written']);
    });

    it('by a name that is taken take another name', async () => {
      fail(apiError(409, 'AlreadyExists'));
      recorder.record(subject('web', 'shop'), synced);
      await settle();
      expect(outcomes).toEqual(['written']);
      expect(new Set(api.seen.map((request) => request.name)).size).toBe(2);
    });

    it('of an answer that was lost do not make a second event', async () => {
      fail('lost');
      recorder.record(subject('web', 'shop'), synced);
      await clock.advance(11_000);
      expect(outcomes).toEqual(['written']);
      expect(stored()).toHaveLength(1);
    });

    it('in a terminating or missing namespace are quiet', async () => {
      fail(apiError(403, 'Forbidden', 'NamespaceTerminating'), apiError(404, 'NotFound'));
      recorder.record(subject('web', 'shop'), synced);
      recorder.record(subject('db', 'shop'), synced);
      await clock.advance(minute);
      expect(outcomes).toEqual(['dropped_terminating', 'dropped_terminating']);
      expect(api.count('create')).toBe(2);
    });
  });

  describe('flush', () => {
    it('writes what waits, with the last counts of all series', async () => {
      recorder.record(subject('web', 'shop'), synced);
      await settle();
      for (let i = 0; i < 9; i++) recorder.record(subject('web', 'shop'), synced);
      await settle();
      recorder.record(subject('db', 'shop'), synced);
      await recorder.flush(1000);
      expect(stored()).toMatchObject([{ series: { count: 10 } }, { regarding: { name: 'db' } }]);
      recorder.close();
      recorder.record(subject('late', 'shop'), synced);
      await settle();
      expect(stored()).toHaveLength(2);
      expect(clock.timerCount).toBe(0);
    });

    it('does not outlast its deadline, whatever hangs', async () => {
      api.fate = () => 'hang';
      recorder.record(subject('web', 'shop'), synced);
      recorder.record(subject('db', 'shop'), synced);
      const flushed = jest.fn();
      const flush = recorder.flush(3000).then(flushed);
      await clock.advance(2999);
      expect(flushed).not.toHaveBeenCalled();
      await clock.advance(1);
      await flush;
      expect(api.seen).toHaveLength(1);
    });

    it('does not wait for the next try of a failing one', async () => {
      api.fate = () => new TransportError('refused', 'T');
      recorder.record(subject('web', 'shop'), synced);
      await settle();
      await recorder.flush(3000);
      expect(outcomes).toEqual(['failed']);
      expect(api.count('create')).toBe(2);
    });
  });

  it('does not keep the objects that it remembers events of', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const about = ((): WeakRef<KubeObject> => {
      const object = { ...subject('web', 'shop'), spec: { config: 'x'.repeat(1000) } };
      recorder.record(object, synced);
      return new WeakRef(object);
    })();
    await settle();
    // A WeakRef holds on until the present turn of the event loop has ended.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(about.deref()).toBeUndefined();
    recorder.record(subject('web', 'shop'), synced);
    await settle();
    expect(stored()).toMatchObject([{ series: { count: 2 } }]);
  });
});
