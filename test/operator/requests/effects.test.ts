import { owned } from '../../../constructs/kube/resource-type';
import { Cluster, Kubeconfig } from '../../../constructs/kinds';
import { clusterSpec } from '../../../constructs/kinds/cluster-spec';
import { clusterInput, clusterTasks } from '../../../provision';
import type { EffectEngineOptions } from '../../../operator/effects/effect-engine';
import { PlanError, type PlanRunner } from '../../../operator/effects/plan-runner';
import { removeCluster, applyCluster, type ClusterPlanOptions } from '../../../provisioner/cluster/cluster-plans';
import { provisionerEffects } from '../../../provisioner/provisioner';
import { createLogger } from '../../../operator/process/logger';
import { MachineError, type Transport } from '../../../provisioner/tasks/transport';
import { NAMESPACE, ref, type Harness } from '../reconcile/harness';
import { ClusterModel } from '../../support/cluster-model';
import { valuesIn } from '../../support/cluster-specs';
import { TracedLife } from './traced-life';

// As in requests.test.ts, of the kinds that act outside of the Kubernetes API. The scripts are those that the provisioner runs; a model of the machines
// answers them.

const { Secret } = owned;
const logger = createLogger({ level: 'silent' });

/** The machines of a cluster `prod`, as the scripts of its spec find them. */
class Machines {
  readonly model = new ClusterModel();
  spec = specOf(1);

  readonly transport: Transport = {
    run: ({ machine, script, stdin }) => {
      const on = machine?.address ?? '';
      if (this.model.dead.has(on)) return Promise.reject(new MachineError('Unreachable', `${on} cannot be reached`));
      const tasks = clusterTasks(clusterInput('prod', clusterSpec.parse(this.spec)));
      this.model.wanted = new Set(this.spec.nodes.map(({ address }) => address));
      const answer = this.model.run({
        id: /^# (\S+) of the cluster/.exec(script)?.[1] ?? '',
        action: tasks.some(({ apply }) => apply === script) ? 'apply' : 'remove',
        ...{ on, script, values: valuesIn(stdin) },
      });
      return Promise.resolve({ exitCode: 0, stdout: JSON.stringify(answer), stderr: '' });
    },
  };

  readonly effects = ({ server: client }: Harness): EffectEngineOptions => {
    const options: ClusterPlanOptions = {
      ...{ client, namespace: NAMESPACE, trustOnFirstUse: true, transport: this.transport },
      onWarning: (message) => logger.warn(message),
    };
    const up: PlanRunner = (run) => applyCluster(run, options);
    const remove: PlanRunner = (run) => removeCluster(run, options);
    return {
      ...provisionerEffects({ client, logger, namespace: NAMESPACE }),
      plans: { 'k3s.up': up, 'k3s.remove': remove },
    };
  };
}

/** A K3s cluster of so many servers. */
function specOf(servers: number) {
  const roles = ['controlplane', 'etcd', 'worker'];
  const addresses = Array.from({ length: servers }, (_, i) => `10.0.0.${String(i + 1)}`);
  return {
    ...{ distribution: 'k3s', version: 'v1.34.1+k3s1', k3s: { registrationAddress: 'api.example.com' } },
    sshKeySecretRef: { namespace: NAMESPACE, name: 'ssh', key: 'key' },
    nodes: addresses.map((address) => ({ address, user: 'root', roles, hostKey: `ssh-ed25519 ${'A'.repeat(68)}` })),
  };
}

async function secret(life: TracedLife, name: string, key: string): Promise<void> {
  const data = { [key]: Buffer.from('secret').toString('base64') };
  const body = { apiVersion: 'v1', kind: 'Secret', metadata: ref(name), data };
  await life.server.create(Secret, body, { fieldManager: 'kubectl' });
}

test('Cluster: the state of what is done outside', async () => {
  const machines = new Machines();
  const life = new TracedLife(Cluster, { effects: machines.effects });
  const become = (servers: number): void => life.change('prod', (machines.spec = specOf(servers)));
  await secret(life, 'ssh', 'key');
  await life.step('created', () => life.create('prod', machines.spec));
  await life.step('two more servers', () => become(3));
  await life.restart('another process');
  await life.step('a server leaves, and cannot be reached', () => {
    machines.model.dead.add('10.0.0.3');
    become(2);
  });
  await life.step('it can be reached again, and the run is tried again', async () => {
    machines.model.dead.clear();
    await life.running.clock.advance(60_000);
  });
  await life.step('deleted', () => life.server.remove(Cluster.type, { name: 'prod' }));
  expect(life.text).toMatchSnapshot();
});

test('Kubeconfig: a probe', async () => {
  let answers = true;
  const probe: PlanRunner = async (run) => {
    await run.secret(run.run.input['secret'] as { namespace: string; name: string; key: string });
    if (!answers) throw new PlanError('ErrUnreachable', 'Nothing answers.', { status: { server: 'https://a' } });
    return { message: 'It answers.', status: { server: 'https://a', kubernetesVersion: 'v1.36.0' } };
  };
  const effects = ({ server: client }: Harness): EffectEngineOptions => ({
    ...provisionerEffects({ client, logger, namespace: NAMESPACE }),
    plans: { 'kubeconfig.probe': probe },
  });
  const life = new TracedLife(Kubeconfig, { effects });
  const secretRef = { namespace: NAMESPACE, name: 'prod', key: 'kubeconfig' };
  await life.step('created, and its Secret is missing', () => life.create('prod', { secretRef }));
  await life.step('its Secret is created', async () => {
    await secret(life, 'prod', 'kubeconfig');
    await life.running.clock.advance(60_000);
  });
  await life.restart('another process, when nothing answers', () => {
    answers = false;
  });
  await life.step('it answers again', async () => {
    answers = true;
    await life.running.clock.advance(60_000);
  });
  await life.step('deleted', () => life.server.remove(Kubeconfig.type, { name: 'prod' }));
  expect(life.text).toMatchSnapshot();
});
