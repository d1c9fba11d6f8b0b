import { randomBytes } from 'node:crypto';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { Cluster } from '../../../constructs/kinds';
import { clusterTasks } from '../../../provision';
import type { ApiClient } from '../../../operator/client/api-client';
import type { PlanRun, RunValues } from '../../../operator/effects/plan-runner';
import { MAX_STATE_BYTES, StateStore } from '../../../operator/effects/state-store';
import { encodeState, sizeOf } from '../../../operator/effects/state-secret';
import { applyCluster } from '../../../provisioner/cluster/cluster-plans';
import { ClusterState } from '../../../provisioner/cluster/cluster-state';
import { toRecordedTask } from '../../../provisioner/tasks/task-record';
import { inputOf, node } from '../../provision/inputs';
import { MemoryApiServer } from '../../../testing/api-server/memory-api-server';

const namespace = 'system';
const owner: KubeObject = { apiVersion: Cluster.apiVersion, kind: 'Cluster', metadata: { name: 'prod', uid: 'u-1' } };
const HOST_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI';
const RKE = { rke: { stateFrom: 'stdin', unknownHosts: 'accept' } } as const;

let values: Record<string, string>;
let puts: number;

/** Values as a run has them, kept by a real store. */
function runValues(): RunValues {
  const store = new StateStore({
    ...{ client: new MemoryApiServer(), kind: Cluster },
    refOf: ({ metadata }) => ({ namespace, name: `${metadata.name}-state` }),
    sizeAdvice: 'fewer nodes',
    retain: () => false,
  });
  const after = (more: Readonly<Record<string, string | undefined>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries({ ...values, ...more }).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
  return {
    all: () => values,
    put: (more) => {
      puts += 1;
      values = after(more);
      return store.save(owner, { records: {}, values });
    },
    assertFit: (more) => store.assertFits(owner, { records: {}, values: after(more) }),
  };
}

beforeEach(() => {
  values = {};
  puts = 0;
});

describe.each(['rke', 'rke2', 'k3s'] as const)('200 nodes of %s', (distribution) => {
  const nodes = Array.from({ length: 200 }, (_, i) => {
    const roles = i < 5 ? (['controlplane', 'etcd', 'worker'] as const) : (['worker'] as const);
    return node(`10.0.${String(i >> 8)}.${String((i % 250) + 1)}`, {
      roles: [...roles],
      hostKey: `${HOST_KEY}${randomBytes(32).toString('base64').slice(0, 43)}`,
      labels: { rack: randomBytes(8).toString('hex') },
      hostnameOverride: `node-${String(i)}`,
    });
  });
  const input = inputOf({ distribution, nodes });
  const plan = clusterTasks(input, RKE);

  test('have a state that leaves half of its Secret free', async () => {
    const state = new ClusterState(runValues());
    const output = (): string => randomBytes(64).toString('base64');
    await state.putRecords(
      plan.map((task) => ({
        task: toRecordedTask(task),
        inputHash: randomBytes(32).toString('hex'),
        outputs: Object.fromEntries((task.outputs ?? []).map((name) => [name, output()])),
      })),
    );
    await state.putApplied(input);
    expect(sizeOf(await encodeState({ records: {}, values }))).toBeLessThan(MAX_STATE_BYTES / 2);
    expect(state.records).toHaveLength(plan.length);
  });

  test('have room before anything is begun', async () => {
    await new ClusterState(runValues()).assertFits({ plan, input, texts: {} });
    expect(puts).toBe(0);
  });
});

test('a state that will be too large is refused before anything is begun, with what to do', async () => {
  const yml = `nodes:
  - address: 192.0.2.1
    user: rke
    role: [controlplane, etcd, worker]
addons: "# ${randomBytes(785_000).toString('base64')}"
`;
  const run = {
    object: {
      ...owner,
      spec: {
        configSecretRef: { namespace, name: 'cluster', key: 'yml' },
        sshKeySecretRef: { namespace, name: 's', key: 'k' },
      },
    },
    run: { input: {} },
    values: runValues(),
    secret: () => Promise.resolve(yml),
    mayGoOn: () => {
      throw new Error('a task was begun');
    },
    report: () => undefined,
    timeout: new AbortController().signal,
    stop: new AbortController().signal,
  } as unknown as PlanRun;
  const options = { client: {} as ApiClient, namespace, trustOnFirstUse: true, onWarning: () => undefined };
  await expect(applyCluster(run, options)).rejects.toMatchObject({
    reason: 'ErrStateTooLarge',
    message: expect.stringMatching(
      /would have [0-9]{7} bytes.*holds at most 1048576\. Make it smaller: fewer nodes/,
    ) as string,
  });
  expect(puts).toBe(0);
});
