import { HelloApp } from '../../../constructs/kinds';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { FunctionLimits } from '../../../operator/reconcile/function-limits';
import { ObjectRenderer, type Rendered } from '../../../operator/reconcile/render-object';

/** What was called, in order: `render a`, `observe a`. */
let calls: string[];
/** What is reconciled next. */
let next: KubeObject[];
let renderer: ObjectRenderer;

const imageOf = (self: KubeObject): string => (self.spec as { readonly image: string }).image;

const Kind = {
  ...HelloApp,
  children: (scope, self) => {
    calls.push(`render ${self.metadata.name}`);
    if (imageOf(self) === 'throws') throw new TypeError('no luck');
    if (imageOf(self) === 'hangs') for (;;);
    HelloApp.children(scope, self as never);
  },
  observe: ({ self }) => {
    calls.push(`observe ${self.metadata.name}`);
    if (imageOf(self) === 'needs a status') throw new TypeError('there is no status');
    return {};
  },
} as AnyKind;

function app(name: string, image = 'i', generation = 1): KubeObject {
  const metadata = { name, namespace: 'n', uid: name, generation };
  return { apiVersion: HelloApp.apiVersion, kind: HelloApp.kind, metadata, spec: { image } };
}

function imageIn({ children }: Rendered): unknown {
  return (children[0]?.manifest.spec as { template: { spec: { containers: { image: string }[] } } }).template.spec
    .containers[0]?.image;
}

let clock: jest.SpyInstance<number>;

beforeEach(() => {
  // Rendering takes no time, however busy the machine is.
  clock = jest.spyOn(performance, 'now').mockReturnValue(0);
  calls = [];
  next = [];
  renderer = new ObjectRenderer(Kind, new FunctionLimits(Kind, { limitMs: 1_000 }), (most) => next.slice(0, most));
});

afterEach(() => clock.mockRestore());

/** What is called while an object is rendered. */
function called(object: KubeObject): readonly string[] {
  calls = [];
  renderer.render(object);
  return calls;
}

it('renders those that come next with a new object, and each a second time when it is reconciled', () => {
  const [a, b, c] = [app('a'), app('b'), app('c')];
  next = [b, c];
  expect(called(a)).toEqual(['render a', 'observe a', 'render b', 'observe b', 'render c', 'observe c', 'render a']);
  next = [c];
  expect([called(b), called(c)]).toEqual([['render b'], ['render c']]);
  expect([a, b, c].map((one) => called(one))).toEqual([['render a'], ['render b'], ['render c']]);
});

it('renders no more than 32 together', () => {
  next = Array.from({ length: 40 }, (_, i) => app(`next-${i}`));
  expect(called(app('a')).filter((call) => call.startsWith('render '))).toHaveLength(32 + 1);
});

it('renders no others after 20 ms', () => {
  clock.mockReturnValueOnce(0).mockReturnValueOnce(19).mockReturnValueOnce(21);
  next = [app('b'), app('c')];
  expect(called(app('a'))).toEqual(['render a', 'observe a', 'render b', 'observe b', 'render a']);
});

it.each<[string, (before: KubeObject) => KubeObject, readonly string[]]>([
  ['another spec', () => app('b', 'j', 2), ['render b', 'observe b', 'render b']],
  // Its functions have returned for what they are given.
  ['another status', (before) => ({ ...before, status: { replicas: 1 } }), ['render b', 'render b']],
  ['nothing else', (before) => before, ['render b']],
])('an object that has %s when it is reconciled is rendered as it is then', (_, change, expected) => {
  const b = app('b');
  next = [b];
  renderer.render(app('a'));
  const changed = change(b);
  next = [];
  calls = [];
  const rendered = renderer.render(changed);
  expect(calls).toEqual(expected);
  expect(imageIn(rendered)).toBe(imageOf(changed));
  expect(rendered.self.status).toEqual(changed.status);
});

it.each([
  ['throws', 'TypeError: no luck'],
  ['hangs', 'TimeLimitError: it has not returned after 1 s'],
])('one that %s fails alone, when it is reconciled', (image, message) => {
  const [a, b, c] = [app('a'), app('b', image), app('c')];
  next = [b, c];
  expect(imageIn(renderer.render(a))).toBe('i');
  next = [];
  expect(() => renderer.render(b)).toThrow(message);
  expect(imageIn(renderer.render(c))).toBe('i');
  expect(() => renderer.render(b)).toThrow(message);
  expect(calls.filter((call) => call === 'render b')).toHaveLength(image === 'hangs' ? 1 : 3);
  expect(imageIn(renderer.render(app('b', 'mended', 2)))).toBe('mended');
});

it('one that depends on more than the object fails alone, when it is reconciled, and is not called again', () => {
  let count = 0;
  const counting = {
    ...HelloApp,
    children: (scope, self) => {
      const image = self.metadata.name === 'b' ? `i${(count += 1)}` : 'i0';
      HelloApp.children(scope, { ...self, spec: { image } } as never);
    },
  } as AnyKind;
  renderer = new ObjectRenderer(counting, new FunctionLimits(counting), () => next);
  const b = app('b');
  next = [b];
  expect(imageIn(renderer.render(app('a')))).toBe('i0');
  for (let i = 0; i < 3; i += 1) expect(() => renderer.render(b)).toThrow('is not pure');
  expect(count).toBe(2);
});

it('observe has a limit of its own when it throws without a status', () => {
  const limits = new FunctionLimits(Kind);
  renderer = new ObjectRenderer(Kind, limits);
  expect(renderer.render(app('a', 'needs a status')).calls.hasEnded('observe')).toBe(false);
  expect(renderer.render(app('b')).calls.hasEnded('observe')).toBe(true);
});
