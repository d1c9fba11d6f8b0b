import type { AnyKind } from '../constructs/kind/kind';
import {
  EFFECT_OPTIONS,
  OPERATOR_OPTIONS,
  effectArguments,
  operatorArguments,
  parseFlags,
} from '../operator/arguments';
import { runOperator } from '../operator/manager';
import { OperatorMetrics } from '../operator/metrics/operator-metrics';
import { optionsFromArguments, type EffectEngineFactory } from '../operator/operator-options';
import { createLogger } from '../operator/process/logger';
import { kubeconfigClient } from './kubeconfig-client';
import { LogLines } from './log-lines';
import { Metrics } from './metrics';

/** How to run an operator in this process. */
interface InProcessOperatorOptions {
  readonly kinds: readonly AnyKind[];
  readonly effects?: EffectEngineFactory | undefined;
  /** The path of the kubeconfig that it uses. */
  readonly kubeconfig: string;
  /** The namespace of its state, unless the command line names one. @default 'default' */
  readonly namespace?: string;
  /** Its command line as in its Deployment. @default none */
  readonly args?: readonly string[];
}

/** An operator in this process. */
export class InProcessOperator {
  /** What it logs. */
  readonly log = new LogLines();
  private readonly stopping = new AbortController();
  private readonly ended: Promise<void>;
  private port = 0;
  private problem: string | undefined;

  private constructor(client: Awaited<ReturnType<typeof kubeconfigClient>>, options: InProcessOperatorOptions) {
    const { kinds, namespace = 'default', args: given = [] } = options;
    const values = parseFlags(given, { ...OPERATOR_OPTIONS, ...EFFECT_OPTIONS });
    const args = operatorArguments(values, kinds, kinds);
    const logger = createLogger({ level: args.logLevel, destination: { write: (line) => this.log.push(line) } });
    const effects = options.effects && { args: effectArguments(values), engine: options.effects };
    this.ended = runOperator({
      ...optionsFromArguments(args, effects, { client, logger, namespace }),
      ...{ metrics: new OperatorMetrics({ defaults: false }), signal: this.stopping.signal },
      health: { port: 0, host: '127.0.0.1' },
      onListening: (port) => (this.port = port),
      // It takes part in no election: at a breakpoint, or while faults last, it would lose its Lease and end.
      onLost: () => undefined,
    });
    this.ended.then(
      () => this.log.end('the operator was stopped'),
      (error: unknown) => this.log.end((this.problem = `the operator has ended: ${String(error)}`)),
    );
  }

  /**
   * Starts it; resolves when it reconciles.
   *
   * @throws what it ends with before that; Error when it does not reconcile within 60 s. Nothing is left running then.
   */
  static async start(options: InProcessOperatorOptions): Promise<InProcessOperator> {
    const operator = new InProcessOperator(await kubeconfigClient(options.kubeconfig), options);
    try {
      const early = operator.ended.then(() => {
        throw new Error('the operator ended before it reconciled');
      });
      await Promise.race([operator.log.line('reconciling'), early]);
      return operator;
    } catch (error) {
      await operator.stop().catch(() => undefined); // what it ended with is thrown already
      throw error;
    }
  }

  /** Its metrics, as they stand. */
  async metrics(): Promise<Metrics> {
    const { text } = await this.get('/metrics');
    return Metrics.parse(text);
  }

  /** What its `/readyz` answers. */
  async readyz(): Promise<{ readonly status: number; readonly text: string }> {
    return this.get('/readyz');
  }

  /** With what it has ended by itself; undefined: it has not. */
  get failure(): string | undefined {
    return this.problem;
  }

  /** Stops it in order, as SIGTERM does: it finishes reconciles in flight. @throws what it has ended with by itself */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.ended;
  }

  private async get(path: string): Promise<{ readonly status: number; readonly text: string }> {
    const answer = await fetch(`http://127.0.0.1:${String(this.port)}${path}`);
    return { status: answer.status, text: await answer.text() };
  }
}
