import * as pulumi from '@pulumi/pulumi';
import { RemoteCluster, type RemoteClusterArgs } from '../../../stacks/remote-cluster/remote-cluster';
import { ClusterModel } from '../../support/cluster-model';
import { ROLES, addressOf, expectedState, type Spec } from '../../support/cluster-specs';
import { modelCommands } from '../../support/model-commands';
import { Engine, InterruptedError, type RunOptions } from '../../support/pulumi-engine';
import { server } from './clusters';

/** A stack with one cluster, on machines that are modelled. */
export class Stack {
  readonly model = new ClusterModel();
  readonly engine: Engine;
  #errors: string[] = [];

  constructor() {
    const commands = modelCommands(this.model, { onFailure: (reason) => this.#errors.push(reason) });
    this.engine = new Engine({ providers: [commands] });
  }

  /** @returns why it failed, or nothing */
  async up(spec: Spec, options: RunOptions & { readonly lost?: readonly number[] } = {}): Promise<readonly string[]> {
    this.model.wanted = new Set(spec.map(([number]) => addressOf(number)));
    const { lost = [], ...run } = options;
    return this.#run(() => this.engine.up(programOf(spec, lost), run));
  }

  async destroy(options: RunOptions = {}): Promise<readonly string[]> {
    this.model.wanted = new Set();
    return this.#run(() => this.engine.destroy(options));
  }

  async #run(work: () => Promise<unknown>): Promise<readonly string[]> {
    this.#errors = [];
    try {
      await work();
      return [];
    } catch (error) {
      if (this.#errors.length > 0) return this.#errors;
      if (error instanceof InterruptedError) return ['Interrupted'];
      throw error;
    }
  }
}

const programOf = (spec: Spec, lost: readonly number[]) => (): void => {
  const args: RemoteClusterArgs = {
    ...{ distribution: 'k3s', version: 'v1.30.4+k3s1', sshKey: pulumi.secret('key'), protect: false },
    nodes: spec.map(([number, role]) => server(number, { roles: [...ROLES[role]] })),
    options: { registrationAddress: 'k8s.example.com' },
    lost: lost.map(addressOf),
  };
  new RemoteCluster('prod', args);
};

/** The title of a test of a cluster that becomes another one. */
export const DESTROYED = '%s, and destroyed';

/** Expects that a cluster becomes another one, and can be destroyed then. */
export async function expectDestroyed(_: string, one: Spec, other: Spec): Promise<void> {
  const stack = new Stack();
  expect(await stack.up(one)).toEqual([]);
  expect(stack.model.state).toEqual(expectedState(one));
  expect(await stack.up(other)).toEqual([]);
  expect(stack.model.state).toEqual(expectedState(other));
  expect((await stack.engine.preview(programOf(other, []))).summary).toEqual([]);
  expect(await stack.destroy()).toEqual([]);
  expect(stack.model.state).toMatchObject({ clusters: 0, installed: [], violations: [] });
}
