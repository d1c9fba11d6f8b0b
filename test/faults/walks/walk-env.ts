import { setTimeout as delay } from 'node:timers/promises';
import { owned } from '../../../constructs/kube/resource-type';
import { ApiError } from '../../../operator/client/errors';
import type { OperatorProcess } from '../../../testing';
import { noFault } from '../../../testing/fault-proxy/fault-proxy';
import type { FaultTestEnv } from '../../support/test-env';
import { ErrorLog, consistencyCheckArgs } from '../support/steady-state';
import { ClusterView } from './cluster-view';
import { applyDrift } from './drift';
import {
  dropsConnectionsFirst,
  faultOf,
  formatStep,
  type DriftStep,
  type TimedStep,
  type Walk,
  type WorldStep,
} from './steps';
import { DesiredState, User } from './user';

/** Where a walk takes place, and the account of it. */
export class WalkEnv {
  readonly ledger = new DesiredState();
  /** What was done and what came of it, a line each. */
  readonly trace: string[] = [];
  /** Those that have worked on it, the one at work included. */
  readonly operators: OperatorSupervisor;
  private readonly user: User;
  private readonly began = Date.now();

  constructor(
    readonly env: FaultTestEnv,
    readonly namespace: string,
    private readonly walk: Walk,
  ) {
    this.operators = new OperatorSupervisor(env);
    this.user = new User(env.client, namespace, walk.slots, this.ledger);
  }

  /** Goes the whole walk. What the API server refuses is no step; what it does not answer is an error of the test. */
  async run(): Promise<void> {
    for (const timed of this.walk.steps) {
      this.log(`${formatStep(this.walk, timed)}: ${await this.perform(timed)}`);
      await delay(timed.then);
    }
  }

  /** Starts another operator when the one that ran has given up, as the kubelet does. */
  async restartIfExited(): Promise<void> {
    if (this.env.operator.running) return;
    await this.operators.replace();
    this.log('the operator had lost its Lease, and was started anew');
  }

  log(line: string): void {
    this.trace.push(`${((Date.now() - this.began) / 1000).toFixed(1).padStart(6)} s  ${line}`);
  }

  private async perform(step: TimedStep): Promise<string> {
    try {
      switch (step.do) {
        case 'drift':
          return await this.drift(step);
        case 'put':
        case 'change':
        case 'scale':
        case 'pause':
        case 'delete':
        case 'again':
          return await this.user.perform(step);
        default:
          await this.injectFault(step);
          return 'done';
      }
    } catch (error) {
      if (error instanceof ApiError) return `refused: ${error.message}`;
      throw error;
    }
  }

  private async drift({ child, how }: DriftStep): Promise<string> {
    const { client } = this.env;
    const children = (await ClusterView.load(client, this.namespace)).ownedObjects();
    const found = children[child % Math.max(1, children.length)];
    if (found === undefined) return 'there is no child';
    const { name, uid } = found.object.metadata;
    await applyDrift(client, found, how);
    // What it is known by may be what has just been taken away.
    if (how === 'disown' || this.ledger.isReleased(found.object)) this.ledger.release(uid);
    return `${found.type.kind} ${name}`;
  }

  private async injectFault(step: WorldStep): Promise<void> {
    const { env } = this;
    switch (step.do) {
      case 'crash':
        await this.operators.replace();
        return;
      case 'freeze':
        env.operator.pause();
        return;
      case 'thaw':
        env.operator.resume();
        return this.restartIfExited();
      case 'restart-api-server':
        return env.outage(() => env.plane.faults.restartApiServer());
      case 'compact-etcd':
        // Which restarts the API server.
        return env.outage(() => env.plane.faults.compactEtcd());
      case 'calm':
        env.proxy.fault = noFault;
        return;
      case 'cut':
        env.proxy.dropConnections();
        return;
      case 'fault': {
        const revision = (await env.client.list(owned.ConfigMap, { namespace: this.namespace })).resourceVersion;
        env.proxy.fault = faultOf(step.fault, { seed: String(step.seed), revision });
        if (dropsConnectionsFirst(step.fault, step.seed)) env.proxy.dropConnections();
      }
    }
  }
}

/** The operators of a walk, one after the other: what each has found counts, though another has taken its place. */
class OperatorSupervisor {
  private readonly logged = new ErrorLog();

  /** Takes over the one that works. */
  constructor(private readonly env: FaultTestEnv) {
    this.logged.follow(env.operator);
  }

  /**
   * Starts another in place of one that has given up, or is killed now; it need not work yet.
   *
   * @throws Error when the one that is replaced, or one before it, has logged what is a bug, or has ended by itself
   */
  async replace(): Promise<OperatorProcess> {
    const { env } = this;
    if (env.operator.running) await env.operator.kill();
    else this.expectLostLeadership();
    this.expectNoBug();
    await env.releaseLease();
    const next = await env.start(consistencyCheckArgs);
    this.logged.follow(next);
    return next;
  }

  /**
   * None of them has logged what is a bug.
   *
   * @throws Error with what was logged
   */
  expectNoBug(): void {
    this.logged.expectNoBug();
  }

  /** It gives up only when it has lost its Lease. */
  private expectLostLeadership(): void {
    const { all } = this.env.operator.log;
    if (all.some(({ msg }) => msg === 'lost leadership')) return;
    throw new Error(`the operator has ended by itself: ${JSON.stringify(all.at(-1))}`);
  }
}
