import { Cluster, HelloApp } from '../../constructs/kinds';
import { runOperator } from '../../operator/src/operator';
import { createLogger } from '../../operator/src/runtime/logger';
import { OperatorMetrics } from '../../operator/src/runtime/metrics';
import { MemoryApiServer } from './support/memory-api-server';

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
