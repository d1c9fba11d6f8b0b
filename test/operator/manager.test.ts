import { Cluster, HelloApp } from '../../constructs/kinds';
import { runOperator } from '../../operator/manager';
import { createLogger } from '../../operator/process/logger';
import { OperatorMetrics } from '../../operator/metrics/operator-metrics';
import { MemoryApiServer } from '../../testing/api-server/memory-api-server';

test('a kind that acts outside the API is refused before anything is asked of the server', async () => {
  const client = new MemoryApiServer();
  const run = runOperator({
    client,
    kinds: [HelloApp, Cluster],
    logger: createLogger({ level: 'silent' }),
    metrics: new OperatorMetrics({ defaults: false }),
    signal: new AbortController().signal,
    onLost: () => undefined,
  });
  await expect(run).rejects.toThrow(
    'clusters.clusterprovisioner.rke.io: these kinds act outside the Kubernetes API, which this operator cannot do',
  );
  expect(client.requests).toEqual([]);
});
