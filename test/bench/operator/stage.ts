import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HelloApp } from '../../../constructs/kinds';
import { startControlPlane, type ControlPlane } from '../../../local';
import type { BareAccess } from '../../../bench/bare-loop';
import type { Usage } from '../../../bench/results';
import { adminClient, operatorBundle } from '../../../testing';
import type { ApiClient } from '../../../operator/client/api-client';
import { installOnApi } from '../../e2e/operator/many-platform';
import { AuditTail } from './audit-tail';
import { auditedRequests, type AuditedRequests } from './audited-requests';
import { bareAccess, bareBundle, sendBare } from './bare-process';
import { calm } from './calm';
import { kindred, podEnv, twin, type Contestant } from './contestant';
import type { Pair } from './limit';
import { MeasuredProcess, type Program } from './measured-process';
import { twins } from './peers';
import { makeTwinAccount, twinAccount } from './twin-account';

/** The longest that a benchmark runs. */
const expirationSeconds = 6 * 3600;

/** What a stage is made of. */
interface Props {
  readonly plane: ControlPlane;
  readonly client: ApiClient;
  readonly audit: AuditTail;
  readonly bare: { readonly bundle: string; readonly access: BareAccess; readonly concurrency: number };
  readonly contestants: readonly Contestant[];
  readonly skipped: readonly string[];
  readonly folder: string;
}

/** What is asked of a running operator. */
export type MeasuredOperator = Pick<
  MeasuredProcess,
  'startedAt' | 'gone' | 'reconciling' | 'settled' | 'work' | 'usage' | 'stop'
>;

/** What the measuring needs of a stage. */
export type Grounds = Pick<Stage, 'client' | 'contestants' | 'requests' | 'start' | 'send' | 'calm'>;

/** A control plane with the platform on it, and the operators that are measured. */
export class Stage {
  private constructor(private readonly props: Props) {}

  /** Builds the operator if need be, and keeps a copy: the sources may change while it is measured. */
  static async set(
    options: { readonly concurrency: number; readonly bundle: string },
    signal: AbortSignal,
  ): Promise<Stage> {
    const built = options.bundle === '' ? await operatorBundle() : options.bundle;
    const peer = await twins(join(__dirname, '..', '..', '..'), signal);
    const folder = await mkdtemp(join(tmpdir(), 'kindred-bench-'));
    let plane: ControlPlane | undefined;
    try {
      const bundle = join(folder, 'operator.cjs');
      await copyFile(built, bundle);
      plane = await startControlPlane({ components: 'api', signal });
      const { account, args: own } = await installOnApi(plane, [HelloApp]);
      const kubeconfig = await plane.kubeconfigFor(account, { expirationSeconds });
      const client = await adminClient(plane.adminKubeconfig);
      const args = [...own, `--kubeconfig=${kubeconfig}`, `--concurrency=${String(options.concurrency)}`];
      const contestants = [kindred({ user: userOf(account), bundle, args })];
      const skipped: string[] = [];
      if ('missing' in peer) skipped.push(peer.missing);
      else contestants.push(...(await twinsOn(plane, client, peer.file)));
      const audit = new AuditTail(join(plane.dataDir, 'audit.log'), client);
      const bare = {
        ...{ bundle: await bareBundle(folder), access: await bareAccess(kubeconfig), concurrency: options.concurrency },
      };
      return new Stage({ plane, client, audit, bare, contestants, skipped, folder });
    } catch (error) {
      await plane?.stop();
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** The administrator's requests. */
  get client(): ApiClient {
    return this.props.client;
  }

  /** The operators that could be had. */
  get contestants(): readonly Contestant[] {
    return this.props.contestants;
  }

  /** What could not be had, and why. */
  get skipped(): readonly string[] {
    return this.props.skipped;
  }

  /** What the API server says it is. */
  get kubernetes(): string {
    return this.props.plane.version;
  }

  /** What an account has asked for since anybody's requests were read last. */
  async requests(user: string): Promise<AuditedRequests> {
    return auditedRequests(await this.props.audit.since(user), user);
  }

  /** Starts an operator. */
  start(program: Program, signal: AbortSignal): MeasuredOperator {
    return MeasuredProcess.start(program, signal);
  }

  /** Sends prepared requests in our operator's name, from a process that is started as our operator is; @returns what that used */
  send(pairs: readonly Pair[], signal: AbortSignal): Promise<Usage> {
    return sendBare(pairs, { ...this.props.bare, env: podEnv(pairs.length), signal });
  }

  /** Waits until the machine has little to do. */
  calm(): Promise<void> {
    return calm();
  }

  /** Ends everything and removes what it has left on the disk. */
  async clear(): Promise<void> {
    await this.client.close();
    await this.props.plane.stop();
    await rm(this.props.folder, { recursive: true, force: true });
  }
}

async function twinsOn(plane: ControlPlane, client: ApiClient, file: string): Promise<readonly Contestant[]> {
  await makeTwinAccount(client);
  const kubeconfig = await plane.kubeconfigFor(twinAccount, { expirationSeconds });
  const of = { user: userOf(twinAccount), file, kubeconfig };
  return [twin('tuned', of), twin('plain', of)];
}

function userOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `system:serviceaccount:${namespace}:${name}`;
}
