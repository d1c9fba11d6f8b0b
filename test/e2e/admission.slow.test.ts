import * as fc from 'fast-check';
import { crdManifest } from '../../constructs/crd';
import { InvalidObjectError } from '../../constructs/kube/errors';
import type { AnyKind } from '../../constructs/kind/kind';
import type { Json, KubeObject } from '../../constructs/kube/kube-object';
import { validateObject } from '../../constructs/kind/validate';
import { allKinds } from '../../constructs/kinds';
import { useControlPlane } from '../support/use-control-plane';
import { waitFor } from '../../testing/wait-for';
import { invalidSpecArbitrary, objectName, specArbitrary } from '../support/spec-arbitrary';
import { Api } from './crds/api';

const RUNS = 400;
const plane = useControlPlane({ components: 'api' });
let api: Api;

function pathOf(kind: AnyKind): string {
  const scope = kind.scope === 'Namespaced' ? '/namespaces/default' : '';
  return `/apis/${kind.apiVersion}${scope}/${kind.plural}`;
}

function objectOf(kind: AnyKind, name: string, spec: Json): KubeObject {
  const { apiVersion } = kind;
  return {
    apiVersion,
    kind: kind.kind,
    metadata: { name, ...(kind.scope === 'Namespaced' ? { namespace: 'default' } : {}) },
    spec,
  };
}

function ourVerdict(kind: AnyKind, object: KubeObject): string {
  try {
    validateObject(kind, object);
    return 'admitted';
  } catch (error) {
    if (error instanceof InvalidObjectError) return `refused: ${error.message}`;
    throw error;
  }
}

async function serversVerdict(kind: AnyKind, object: KubeObject): Promise<string> {
  const { status, body } = await api.ask('POST', `${pathOf(kind)}?dryRun=All&fieldValidation=Strict`, object);
  if (status === 201) return 'admitted';
  // 400: a field of another type than the schema's, or one that it does not know; 422: a value it does not admit.
  if (status === 400 || status === 422) return `refused: ${String(body.message)}`;
  throw new Error(`the API server answered ${String(status)}: ${String(body.message)}`);
}

async function expectSameVerdict(kind: AnyKind, name: string, spec: Json): Promise<void> {
  const object = objectOf(kind, name, spec);
  const [ours, servers] = [ourVerdict(kind, object), await serversVerdict(kind, object)];
  if ((ours === 'admitted') !== (servers === 'admitted')) throw new Error(`zod: ${ours}\nserver: ${servers}`);
}

beforeAll(async () => {
  api = await Api.of(plane.adminKubeconfig);
  for (const kind of allKinds) {
    await api.ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crdManifest(kind));
    await waitFor(async () => (await api.ask('GET', pathOf(kind))).status === 200, {
      describe: `${kind.plural} to be served`,
    });
  }
}, 60_000);

afterAll(() => api.close());

describe.each(allKinds.map((kind) => [kind.kind, kind] as const))(
  'zod and the API server judge a %s alike',
  (_, kind) => {
    const anyName = kind.names === undefined ? fc.constant('a-name') : objectName;

    test('as its schema admits it', async () => {
      const property = fc.asyncProperty(anyName, specArbitrary(kind.schema.spec), (name, spec) =>
        expectSameVerdict(kind, name, spec),
      );
      await fc.assert(property, { numRuns: RUNS });
    }, 120_000);

    test('with mistakes in it', async () => {
      const property = fc.asyncProperty(anyName, invalidSpecArbitrary(kind.schema.spec), (name, spec) =>
        expectSameVerdict(kind, name, spec),
      );
      await fc.assert(property, { numRuns: RUNS });
    }, 120_000);
  },
);
