import { CredentialCache, type Credentials } from '../../../operator/client/cluster-access';

interface Setup {
  readonly cache: CredentialCache;
  readonly asked: boolean[];
  readonly clock: { now: number };
  answer: (count: number) => Promise<Credentials>;
}

function setUp(): Setup {
  const clock = { now: 0 };
  const asked: boolean[] = [];
  const setup: Setup = {
    asked,
    clock,
    answer: (count) => Promise.resolve({ headers: { authorization: `token ${count}` } }),
    cache: new CredentialCache(
      {
        server: 'http://x',
        credentials: (rejected) => {
          asked.push(rejected);
          return setup.answer(asked.length);
        },
      },
      { now: () => clock.now, timeoutMs: 50 },
    ),
  };
  return setup;
}

const settled = (): Promise<void> => new Promise(setImmediate);

test('asks once, however many wait', async () => {
  const { cache, asked } = setUp();
  const [first, second] = await Promise.all([cache.get(), cache.get()]);
  expect(first).toBe(second);
  expect(cache.get()).toBe(first);
  expect(asked).toEqual([false]);
});

test('renews by age beside the requests; a failure leaves the old ones in use', async () => {
  const setup = setUp();
  const { cache, clock, asked } = setup;
  const first = await cache.get();
  clock.now = 60_000;
  setup.answer = () => Promise.reject(new Error('not now'));
  expect(cache.get()).toBe(first);
  await settled();
  expect(cache.get()).toBe(first);
  expect(asked).toHaveLength(2);
  clock.now = 120_000;
  setup.answer = (count) => Promise.resolve({ headers: { authorization: `token ${count}` } });
  expect(cache.get()).toBe(first);
  await settled();
  expect(cache.get()).toEqual({ headers: { authorization: 'token 3' } });
});

test('never hands out what is about to expire', async () => {
  const setup = setUp();
  setup.answer = (count) => Promise.resolve({ headers: { count: String(count) }, expiresAt: count * 30_000 });
  const { cache, clock } = setup;
  await cache.get();
  clock.now = 19_999;
  expect(cache.get()).toMatchObject({ headers: { count: '1' } });
  clock.now = 20_000;
  const renewed = cache.get();
  expect(renewed).toBeInstanceOf(Promise);
  expect(await renewed).toMatchObject({ headers: { count: '2' } });
});

test('a rejection drops what was rejected, not what came since', async () => {
  const { cache, asked } = setUp();
  const first = await cache.get();
  cache.reject(first);
  const second = await cache.get();
  expect(second).not.toBe(first);
  cache.reject(first);
  expect(cache.get()).toBe(second);
  expect(asked).toEqual([false, true]);
});

test('a plugin that hangs is given up', async () => {
  const setup = setUp();
  setup.answer = () => new Promise(() => undefined);
  await expect(setup.cache.get()).rejects.toThrow('no credentials after 0.05 s');
});
