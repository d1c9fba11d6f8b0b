import type { AnyKind } from '../../constructs/kind/kind';
import type { TestControlPlane } from './use-control-plane';
import { waitFor } from '../../testing/wait-for';
import { runOperator } from '../../operator/manager';
import { createLogger } from '../../operator/process/logger';
import { OperatorMetrics } from '../../operator/metrics/operator-metrics';
import { kubeconfigClient } from '../../testing';

/** An operator of a test's own kinds, in this process and with an administrator's rights. */
export interface InProcessOperator {
  /** What its health server says. */
  readyz(): Promise<{ readonly status: number; readonly text: string }>;
  /** What it has logged, from `info` on. */
  readonly log: readonly Record<string, unknown>[];
  stop(): Promise<void>;
}

/** Starts one; resolves when its health server listens. */
export async function startInProcessOperator(
  plane: TestControlPlane,
  kinds: readonly AnyKind[],
): Promise<InProcessOperator> {
  const stopping = new AbortController();
  const log: Record<string, unknown>[] = [];
  const write = (line: string): void => void log.push(JSON.parse(line) as Record<string, unknown>);
  let port = 0;
  const running = runOperator({
    client: await kubeconfigClient(plane.adminKubeconfig),
    kinds,
    logger: createLogger({ level: 'info', destination: { write } }),
    metrics: new OperatorMetrics({ defaults: false }),
    signal: stopping.signal,
    onLost: () => undefined,
    health: { port: 0, host: '127.0.0.1' },
    onListening: (listening) => (port = listening),
  });
  await Promise.race([running, waitFor(() => port > 0)]);
  return {
    log,
    readyz: async () => {
      const answer = await fetch(`http://127.0.0.1:${String(port)}/readyz`);
      return { status: answer.status, text: await answer.text() };
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
