import { crdManifest } from '../../../constructs/crd';
import type { AnyKind } from '../../../constructs/kind/kind';
import { waitFor } from '../../../local/testing';
import type { Api } from './api';

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

interface Crd {
  readonly status?: { readonly conditions?: readonly { type: string; status: string; message: string }[] };
}

/**
 * Installs a kind's CRD and waits until it is established. The server estimates the cost of every rule when it takes the CRD, and refuses
 * what exceeds the budget.
 */
export async function installCrd(api: Api, kind: AnyKind): Promise<void> {
  const { status, body } = await api.ask('POST', `${CRDS}?fieldValidation=Strict`, crdManifest(kind));
  expect({ status, message: body.message }).toEqual({ status: 201, message: undefined });
  await waitFor(
    async () => {
      const crd = (await api.ask('GET', `${CRDS}/${kind.crdName}`)).body as Crd;
      const conditions = crd.status?.conditions ?? [];
      expect(conditions.filter(({ type }) => type === 'NonStructuralSchema')).toEqual([]);
      return conditions.some(({ type, status: state }) => type === 'Established' && state === 'True');
    },
    { describe: `${kind.crdName} to be established` },
  );
}
