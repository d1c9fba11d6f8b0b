import { join } from 'node:path';
import { serverImage } from '../../../local';
import { kubectlOrThrow } from '../../../testing/kubectl';
import { eventually } from '../../operator/support/eventually';
import { Start, expectNothingLeft, startTimeoutMs } from '../dev-process';
import { describeOnNodes } from './on-nodes';

jest.setTimeout(startTimeoutMs);

interface PodList {
  readonly items: readonly {
    readonly status: {
      readonly phase: string;
      readonly containerStatuses: readonly { readonly image: string; readonly ready: boolean }[];
    };
  }[];
}

describeOnNodes('kindred dev --pods', () => {
  let start: Start | undefined;
  afterEach(async () => {
    start?.signal('SIGKILL');
    await start?.ended;
  });

  test('runs the operator as its Deployment and the samples in real pods, and leaves nothing behind', async () => {
    start = new Start('--pods', '--installer=apply');
    await start.says(/^ {2}export KUBECONFIG=\S+$/m);
    expect(start.stdout).toMatch(/^All 7 objects are Ready/m);
    expect(start.stdout).toMatch(/^The operator runs as its Deployment, in 2 pods /m);
    const [, adminKubeconfig = ''] = /^ {2}export KUBECONFIG=(\S+)$/m.exec(start.stdout) ?? [];
    const plane = { adminKubeconfig, dataDir: join(adminKubeconfig, '..') };
    const kubectl = (...args: readonly string[]): Promise<string> => kubectlOrThrow(plane, args);
    const podsIn = async (namespace: string): Promise<readonly unknown[]> => {
      const { items } = JSON.parse(await kubectl('-n', namespace, 'get', 'pods', '-o', 'json')) as PodList;
      return items.map(({ status }) => [
        status.phase,
        status.containerStatuses.map(({ image, ready }) => [image, ready]),
      ]);
    };

    const image = expect.stringMatching(/(^|\/)kindred-operator:/) as string;
    expect(await podsIn('kindred-system')).toEqual(Array.from({ length: 2 }, () => ['Running', [[image, true]]]));
    const samples = await podsIn('kindred-samples');
    expect(samples.length).toBeGreaterThanOrEqual(5);
    expect(new Set(samples.map((pod) => JSON.stringify(pod)))).toEqual(
      new Set([JSON.stringify(['Running', [[serverImage, true]]])]),
    );

    // A Service reaches its pods, at the port that they declare.
    const service = ['-n', 'kindred-samples', 'get', 'service', 'ms-sample-v1s0', '-o', 'jsonpath={.spec.clusterIP}'];
    const url = `http://${await kubectl(...service)}:9898/hello`;
    // A container without a readiness probe counts as ready before it listens.
    await eventually(async () => {
      const ask = ['exec', 'deploy/helloapp-sample', '--', '/pod', 'get', url];
      expect(await kubectl('-n', 'kindred-samples', ...ask)).toMatch(/^ms-sample-v1s0-\S+ \/hello\n$/);
    });

    // What it tells the user to try.
    await kubectl('-n', 'kindred-samples', 'scale', 'helloapp/helloapp-sample', '--replicas=3');
    await kubectl(
      '-n',
      'kindred-samples',
      'wait',
      'deployment/helloapp-sample',
      '--for=jsonpath={.status.readyReplicas}=3',
    );
    const log = ['logs', '-l', 'app.kubernetes.io/instance=kindred-operator', '--tail=-1'];
    expect(await kubectl('-n', 'kindred-system', ...log)).toContain('became leader');
    start.signal('SIGINT');
    expect(await start.ended).toMatchObject({ stderr: '' });
    expectNothingLeft(start);
  });
});
