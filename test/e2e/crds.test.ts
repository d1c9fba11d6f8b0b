import { kinds } from '../../constructs/kinds';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { validateObject } from '../../constructs/kind/validate';
import { waitFor } from '../../testing/wait-for';
import { KitchenSink } from '../constructs/crd/kitchen-sink';
import { specs } from '../constructs/crd/specs';
import { useSharedControlPlane } from '../support/shared-control-plane';
import { Api, installCrd } from './crds/api';

const plane = useSharedControlPlane();
const SINKS = `/apis/${KitchenSink.apiVersion}/namespaces/${plane.namespace}/${KitchenSink.plural}`;

let api: Api;

function sink(spec: object, name = 'sink'): KubeObject {
  const { apiVersion, kind } = KitchenSink;
  return { apiVersion, kind, metadata: { name, namespace: plane.namespace }, spec: { label: 'web', ...spec } };
}

function refusalOf(object: KubeObject): string | undefined {
  try {
    validateObject(KitchenSink, object);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

beforeAll(async () => {
  api = await Api.of(plane.adminKubeconfig);
  await installCrd(api, KitchenSink);
  // An established kind may take a moment to be served.
  await waitFor(async () => (await api.ask('GET', SINKS)).status === 200);
}, 60_000);

afterAll(() => api.close());

describe('the API server accepts the CRD of', () => {
  test.each(kinds.map((kind) => [kind.kind, kind] as const))('%s', async (_, kind) => {
    await installCrd(api, kind);
  });
});

describe('zod and the API server agree on', () => {
  test.each(specs)('%s (valid: %p)', async (_, valid, spec) => {
    const object = sink(spec);
    const { status, body } = await api.ask('POST', `${SINKS}?dryRun=All&fieldValidation=Strict`, object);
    const refusals = { zod: refusalOf(object), server: status === 201 ? undefined : body.message };
    if (valid) expect(refusals).toEqual({ zod: undefined, server: undefined });
    else expect(refusals).toEqual({ zod: expect.any(String) as string, server: expect.any(String) as string });
  });

  test('the defaults', async () => {
    const object = sink({ ports: [{ name: 'dns' }] });
    const { body } = await api.ask('POST', `${SINKS}?dryRun=All`, object);
    expect(body.spec).toEqual(validateObject(KitchenSink, object).spec);
  });

  test.each([
    ['a name as long as may be', true, 'a'.repeat(20)],
    ['a longer name', false, 'a'.repeat(21)],
    ['a name with a dot', false, 'a.b'],
  ])('%s', async (_, valid, name) => {
    const object = sink({}, name);
    const { status } = await api.ask('POST', `${SINKS}?dryRun=All`, object);
    expect(status).toBe(valid ? 201 : 422);
    expect(refusalOf(object) === undefined).toBe(valid);
  });
});

describe('the API server holds what only it can', () => {
  test('a rule on the object as a whole', async () => {
    const { status, body } = await api.ask('POST', `${SINKS}?dryRun=All`, sink({ locked: 'x' }, 'unlocked'));
    expect(status).toBe(422);
    expect(body.message).toContain('an object named unlocked has no spec.locked');
  });

  test('immutable fields, in lists with keys too', async () => {
    const first = sink({ locked: 'a', steady: [{ key: 'k', value: 'v' }] }, 'immutable');
    expect((await api.ask('POST', SINKS, first)).status).toBe(201);
    const patch = (spec: object) => api.ask('PATCH', `${SINKS}/immutable`, { spec });
    expect((await patch({ locked: 'b' })).body.message).toContain('spec.locked: Invalid value: "b": cannot be changed');
    expect((await patch({ steady: [{ key: 'k', value: 'w' }] })).body.message).toContain(
      'cannot be changed once it is set',
    );
    expect((await patch({ steady: [{ key: 'other', value: 'w' }], count: 4 })).status).toBe(200);
  });

  test('the message and the field of a rule', async () => {
    const { body } = await api.ask('POST', `${SINKS}?dryRun=All`, sink({ text: 'abc', exact: 'abcd' }));
    expect(body.message).toContain('spec.exact: Invalid value: give at most one of text and exact');
  });

  test('unknown fields are pruned, and kept where the schema says so', async () => {
    const object = sink({ colour: 'red', open: { colour: 'red' } });
    const { body } = await api.ask('POST', `${SINKS}?dryRun=All&fieldValidation=Ignore`, object);
    expect(body.spec).toMatchObject({ open: { colour: 'red' } });
    expect(body.spec).not.toHaveProperty('colour');
  });

  test('the scale subresource', async () => {
    expect((await api.ask('POST', SINKS, sink({}, 'scaled'))).status).toBe(201);
    const { status, body } = await api.ask('PATCH', `${SINKS}/scaled/scale`, { spec: { replicas: 5 } });
    expect({ status, spec: body.spec }).toEqual({ status: 200, spec: { replicas: 5 } });
  });
});
