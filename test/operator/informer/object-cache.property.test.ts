import fc from 'fast-check';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { CacheEvent } from '../../../operator/informer/projection';
import { ObjectCache } from '../../../operator/informer/object-cache';
import { CONFIG_MAPS } from '../support/fake-cluster';

const NAMES = ['a', 'b'] as const;
type Name = (typeof NAMES)[number];
type Author = 'own' | 'foreign';

interface Change {
  readonly name: Name;
  readonly version: number;
  readonly uid: string;
  readonly author: Author;
  readonly type: 'put' | 'delete';
}

interface How {
  readonly tracked: boolean;
  /** Whether the cache is offered the version of an event before the event itself. */
  readonly offered: boolean;
}

/** A server in a few lines, a cache that follows it late, and a record of what was told. */
class World {
  readonly cache = new ObjectCache(CONFIG_MAPS);
  readonly told: CacheEvent[] = [];
  readonly changes: Change[] = [];
  relists = 0;
  private version = 0;
  private delivered = 0;
  private readonly alive = new Map<Name, Change>();
  private readonly writing = new Set<Name>();
  private answers: (() => Promise<void>)[] = [];

  constructor(private readonly how: How) {
    this.cache.addEventHandler((event) => this.told.push(event));
  }

  put(name: Name, author: Author): void {
    // One key never runs twice at once.
    if (author === 'own' && this.writing.has(name)) return;
    const uid = this.alive.get(name)?.uid ?? `uid-${this.version + 1}`;
    const change: Change = { name, version: ++this.version, uid, author, type: 'put' };
    this.alive.set(name, change);
    this.changes.push(change);
    if (author === 'own') this.send(change);
  }

  delete(name: Name): void {
    const before = this.alive.get(name);
    if (before === undefined) return;
    this.alive.delete(name);
    this.changes.push({ ...before, version: ++this.version, author: 'foreign', type: 'delete' });
  }

  /** The stream tells the next change. */
  deliver(): void {
    const change = this.changes.find(({ version }) => version > this.delivered);
    if (change === undefined) {
      this.delivered = this.version;
      this.cache.advance(String(this.version));
      return;
    }
    this.delivered = change.version;
    if (change.type === 'delete') this.cache.applyDeletion(toObject(change));
    else if (!this.how.offered || !this.cache.applyEcho(String(change.version)))
      this.cache.applyChange(toObject(change));
  }

  relist(): void {
    this.relists++;
    this.delivered = this.version;
    const entries = [...this.alive.values()].map((change) => this.cache.project(toObject(change)));
    this.cache.replace(entries, String(this.version));
  }

  /** One of the writes under way is answered. */
  async answer(which: number): Promise<void> {
    const [answer] = this.answers.splice(which % Math.max(1, this.answers.length), 1);
    await answer?.();
  }

  async settle(): Promise<void> {
    while (this.answers.length > 0) await this.answer(0);
    while (this.delivered < this.version) this.deliver();
  }

  server(): Record<string, string> {
    return Object.fromEntries([...this.alive].map(([name, { uid, version }]) => [name, `${uid}@${version}`]));
  }

  cached(): Record<string, string> {
    return Object.fromEntries(
      this.cache
        .list()
        .map(({ object: { metadata } }) => [metadata.name, `${metadata.uid}@${metadata.resourceVersion}`]),
    );
  }

  private send(change: Change): void {
    const object = toObject(change);
    this.writing.add(change.name);
    if (!this.how.tracked) {
      this.answers.push(() => {
        this.writing.delete(change.name);
        this.cache.observeWrite(object);
        return Promise.resolve();
      });
      return;
    }
    let resolve: (object: KubeObject) => void = () => undefined;
    const done = this.cache.trackWrite({ name: change.name }, () => new Promise((settle) => (resolve = settle)));
    this.answers.push(async () => {
      resolve(object);
      await done;
      this.writing.delete(change.name);
    });
  }
}

function toObject({ name, version, uid }: Change): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, uid, resourceVersion: String(version) } };
}

type Step = (world: World) => void | Promise<void>;
const name = fc.constantFrom(...NAMES);
const own: fc.Arbitrary<Step> = name.map((which) => (world) => world.put(which, 'own'));
const foreign: fc.Arbitrary<Step> = name.map((which) => (world) => world.put(which, 'foreign'));
const removal: fc.Arbitrary<Step> = name.map((which) => (world) => world.delete(which));
const deliver: fc.Arbitrary<Step> = fc.constant((world) => world.deliver());
const answer: fc.Arbitrary<Step> = fc.nat(3).map((which) => (world) => world.answer(which));
const relist: fc.Arbitrary<Step> = fc.constant((world) => world.relist());

async function play(how: How, steps: readonly Step[]): Promise<World> {
  const world = new World(how);
  for (const step of steps) await step(world);
  await world.settle();
  return world;
}

const anyHow: fc.Arbitrary<How> = fc.record({ tracked: fc.boolean(), offered: fc.boolean() });
const anything = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: own },
    foreign,
    removal,
    { weight: 4, arbitrary: deliver },
    { weight: 3, arbitrary: answer },
    relist,
  ),
  { maxLength: 30 },
);

test('whatever the order of events, answers and lists, the cache ends as the server', async () => {
  await fc.assert(
    fc.asyncProperty(anyHow, anything, async (how, steps) => {
      const world = await play(how, steps);
      expect(world.cached()).toEqual(world.server());
    }),
    { numRuns: 1000 },
  );
});

test("somebody else's last change of an object that stands is always told", async () => {
  await fc.assert(
    fc.asyncProperty(anyHow, anything, async (how, steps) => {
      const world = await play(how, steps);
      for (const { name: changed, version, uid } of world.changes.filter(({ author }) => author === 'foreign')) {
        if (!world.server()[changed]?.startsWith(`${uid}@`)) continue;
        const after = world.told.filter(
          ({ object: { object } }) =>
            object.metadata.name === changed && Number(object.metadata.resourceVersion) >= version,
        );
        expect(after).not.toEqual([]);
      }
    }),
    { numRuns: 1000 },
  );
});

test('whoever was told of an object is told of its deletion, once', async () => {
  await fc.assert(
    fc.asyncProperty(anyHow, anything, async (how, steps) => {
      const world = await play(how, steps);
      const uidsOf = (wanted: (type: CacheEvent['type']) => boolean): (string | undefined)[] =>
        world.told.filter(({ type }) => wanted(type)).map(({ object }) => object.object.metadata.uid);
      const deleted = uidsOf((type) => type === 'deleted');
      expect(new Set(deleted).size).toBe(deleted.length);
      const alive = new Set(world.cache.list().map(({ object }) => object.metadata.uid));
      const gone = new Set(uidsOf((type) => type !== 'deleted').filter((uid) => !alive.has(uid)));
      for (const uid of gone) expect(deleted).toContain(uid);
    }),
    { numRuns: 1000 },
  );
});

test('tracked writes of our own raise nothing, whichever comes first, the answer or the echo', async () => {
  const steps = fc.array(fc.oneof(own, { weight: 2, arbitrary: deliver }, answer), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(fc.boolean(), steps, async (offered, played) => {
      const world = await play({ tracked: true, offered }, played);
      expect(world.told).toEqual([]);
      expect(world.cached()).toEqual(world.server());
    }),
    { numRuns: 1000 },
  );
});

test('an echo that need not be read does what reading it does', async () => {
  await fc.assert(
    fc.asyncProperty(fc.boolean(), anything, async (tracked, steps) => {
      const read = await play({ tracked, offered: false }, steps);
      const offered = await play({ tracked, offered: true }, steps);
      expect(offered.told).toEqual(read.told);
      expect(offered.cached()).toEqual(read.cached());
    }),
    { numRuns: 1000 },
  );
});
