import { waitForDeployment } from '../../../cli/pods';
import { serverImage } from '../../../local';
import type { ApiClient } from '../../../operator/client/api-client';
import { kubeconfigClient } from '../../../testing';
import { useControlPlane } from '../../support/use-control-plane';
import { kubectlOrThrow } from '../../../testing/kubectl';
import { describeOnNodes } from './on-nodes';

describeOnNodes('waiting for a Deployment', () => {
  const plane = useControlPlane({ nodes: 1 });
  const { signal } = new AbortController();

  const create = async (name: string, container: object, more: object = {}): Promise<void> => {
    const labels = { 'app.kubernetes.io/instance': name };
    const template = {
      metadata: { labels },
      spec: {
        containers: [
          { name: 'main', image: serverImage, terminationMessagePolicy: 'FallbackToLogsOnError', ...container },
        ],
      },
    };
    const spec = { replicas: 2, selector: { matchLabels: labels }, template, ...more };
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec };
    await kubectlOrThrow(plane, ['apply', '-f', '-'], JSON.stringify(deployment));
  };
  let client: ApiClient;
  beforeAll(async () => {
    client = await kubeconfigClient(plane.adminKubeconfig);
  });
  afterAll(() => client.close());
  const wait = (name: string, timeoutMs?: number): Promise<number> =>
    waitForDeployment(
      client,
      { namespace: 'default', name },
      { signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
    );

  test('ends once its pods are available', async () => {
    await create('web', { command: ['/pod', 'serve', '8080'] });
    await expect(wait('web')).resolves.toBe(2);
  });

  test('says what the containers say when they end, and ends at the progress deadline', async () => {
    // Without a probe a container is ready until it ends.
    const readinessProbe = { tcpSocket: { port: 8080 }, periodSeconds: 1 };
    await create('crash', { command: ['/pod', 'no-such-command'], readinessProbe }, { progressDeadlineSeconds: 10 });
    const error = await wait('crash').catch(String);
    expect(error).toMatch(/the Deployment default\/crash is not rolled out after \d+ s: .*progress/);
    expect(error).toMatch(/^ {2}Pod crash-\S+: /m);
    expect(error).toMatch(/^ {4}main ended with [1-9]\d* \(Error\): \S/m);
  });

  test('says why a container does not start', async () => {
    await create('missing', { image: 'kindred.local/missing:1', imagePullPolicy: 'Never' });
    await expect(wait('missing', 10_000)).rejects.toThrow(
      /is not rolled out after \d+ s: .*\n {2}Pod missing-\S+: .*\n {4}main: ErrImageNeverPull: .*missing:1/,
    );
  });

  test('says that there is none', async () => {
    await expect(wait('nothing', 0)).rejects.toThrow(
      'the Deployment default/nothing is not rolled out after 0 s: it does not exist',
    );
  });
});
