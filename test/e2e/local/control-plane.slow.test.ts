import { useControlPlane } from '../../support/use-control-plane';
import { kubectl } from '../../../testing/kubectl';
import { waitFor } from '../../../testing/wait-for';

const cp = useControlPlane({ components: 'full' });

jest.setTimeout(40_000);

async function ok(args: readonly string[], input?: string): Promise<string> {
  const result = await kubectl(cp, args, input === undefined ? {} : { input });
  expect(result).toMatchObject({ code: 0 });
  return result.stdout;
}

test('it is the pinned Kubernetes, and kubectl sees the same', async () => {
  const { serverVersion } = JSON.parse(await ok(['version', '-o', 'json'])) as {
    serverVersion: { gitVersion: string; major: string; minor: string };
  };
  expect(serverVersion).toMatchObject({ gitVersion: 'v1.36.3', major: '1', minor: '36' });
  expect(cp.version).toBe('v1.36.3');
  expect(cp.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
});

test('the pods of a Deployment become Ready', async () => {
  await ok(['create', 'deployment', 'web', '--image=example.com/web:1', '--replicas=3']);
  await waitFor(
    async () => (await ok(['get', 'deployment', 'web', '-o', 'jsonpath={.status.readyReplicas}'])) === '3',
    {
      timeout: 10_000,
      describe: 'three ready pods',
    },
  );
});

test('a Job completes, and a pod that is deleted is gone', async () => {
  await ok(['create', 'job', 'once', '--image=example.com/once:1']);
  await ok(['wait', '--for=condition=Complete', 'job/once', '--timeout=15s']);
  await ok(['delete', 'pods', '--selector=job-name=once', '--timeout=10s']);
  expect(await ok(['get', 'pods', '--selector=job-name=once', '-o', 'name'])).toBe('');
});

test('a namespace that is deleted goes, with all that is in it', async () => {
  await ok(['create', 'namespace', 'shortlived']);
  await ok(['create', 'configmap', 'note', '-n', 'shortlived', '--from-literal=a=b']);
  await ok(['delete', 'namespace', 'shortlived', '--timeout=20s']);
  expect((await kubectl(cp, ['get', 'namespace', 'shortlived'])).stderr).toContain('NotFound');
});

describe('a ServiceAccount', () => {
  beforeAll(async () => {
    await ok(['create', 'namespace', 'team']);
    await ok(['create', 'serviceaccount', 'reader', '-n', 'team']);
    await ok(['create', 'role', 'read-notes', '-n', 'team', '--verb=get,list', '--resource=configmaps']);
    await ok([
      'create',
      'rolebinding',
      'read-notes',
      '-n',
      'team',
      '--role=read-notes',
      '--serviceaccount=team:reader',
    ]);
  });

  test('may do what RBAC allows, is refused the rest, and the audit log holds both', async () => {
    const kubeconfig = await cp.kubeconfigFor({ namespace: 'team', name: 'reader' });
    const allowed = await kubectl(cp, ['get', 'configmaps', '-n', 'team'], { kubeconfig });
    const refused = await kubectl(cp, ['get', 'secrets', '-n', 'team'], { kubeconfig });
    expect(allowed).toMatchObject({ code: 0 });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('cannot list resource "secrets"');

    const mine = (await cp.auditLog()).filter(({ user }) => user.username === 'system:serviceaccount:team:reader');
    const decided = mine
      .filter(({ objectRef }) => objectRef !== undefined)
      .map(({ verb, objectRef, responseStatus, annotations }) => ({
        what: `${verb} ${objectRef?.resource ?? ''}`,
        code: responseStatus?.code,
        decision: annotations?.['authorization.k8s.io/decision'],
      }));
    expect(decided).toEqual([
      { what: 'list configmaps', code: 200, decision: 'allow' },
      { what: 'list secrets', code: 403, decision: 'forbid' },
    ]);
  });

  test('that does not exist gets no kubeconfig', async () => {
    await expect(cp.kubeconfigFor({ namespace: 'team', name: 'nobody' })).rejects.toThrow(
      /ServiceAccount team\/nobody: it does not exist/,
    );
  });

  test('needs the right to finalizers of an owner it names with blockOwnerDeletion', async () => {
    await ok(['create', 'role', 'write', '-n', 'team', '--verb=get,create', '--resource=configmaps,deployments.apps']);
    await ok(['create', 'rolebinding', 'write', '-n', 'team', '--role=write', '--serviceaccount=team:reader']);
    await ok(['create', 'deployment', 'owner', '-n', 'team', '--image=example.com/owner:1', '--replicas=0']);
    const uid = await ok(['get', 'deployment', 'owner', '-n', 'team', '-o', 'jsonpath={.metadata.uid}']);
    const owned = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'owned',
        namespace: 'team',
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'owner', uid, blockOwnerDeletion: true }],
      },
    };
    const kubeconfig = await cp.kubeconfigFor({ namespace: 'team', name: 'reader' });
    const refused = await kubectl(cp, ['create', '-f', '-'], { input: JSON.stringify(owned), kubeconfig });
    expect(refused.stderr).toContain('cannot set blockOwnerDeletion');
  });
});

test('after a restart of the controller manager, objects owned by a new kind are collected', async () => {
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'things.test.example.com' },
    spec: {
      group: 'test.example.com',
      scope: 'Namespaced',
      names: { plural: 'things', kind: 'Thing' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  };
  await ok(['create', '-f', '-'], JSON.stringify(crd));
  await ok(['wait', '--for=condition=Established', 'crd/things.test.example.com', '--timeout=10s']);
  await cp.faults.restartControllerManager();
  const thing = { apiVersion: 'test.example.com/v1', kind: 'Thing', metadata: { name: 'one', namespace: 'default' } };
  await ok(['create', '-f', '-'], JSON.stringify(thing));
  const uid = await ok(['get', 'thing', 'one', '-o', 'jsonpath={.metadata.uid}']);
  const owner = { apiVersion: 'test.example.com/v1', kind: 'Thing', name: 'one', uid };
  const note = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'of-one', ownerReferences: [owner] } };
  await ok(['create', '-n', 'default', '-f', '-'], JSON.stringify(note));
  await ok(['delete', 'thing', 'one']);
  await waitFor(async () => (await kubectl(cp, ['get', 'configmap', 'of-one'])).stderr.includes('NotFound'), {
    timeout: 15_000,
    describe: 'the ConfigMap of a deleted Thing to be collected',
  });
});
