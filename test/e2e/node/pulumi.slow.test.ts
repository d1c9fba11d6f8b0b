import { readFileSync } from 'node:fs';
import { HelloApp } from '../../../constructs/kinds';
import { serverImage } from '../../../local';
import { PlatformComponent } from '../../../stacks/components';
import { kubeconfigClient } from '../../../testing';
import { useControlPlane } from '../../support/use-control-plane';
import { expectChildren, isReadyNow } from '../../support/assertions';
import { Engine, kubernetesProvider } from '../../support/pulumi-engine';
import { temporaryFolder } from '../../support/temporary-folder';
import { TestEnv } from '../../support/test-env';
import { RealStack, pulumiVersion } from '../stacks/pulumi-cli';
import { describeOnNodes } from './on-nodes';
import { OperatorPods, importOperatorImage, isReadyPod } from './operator-pods';

jest.setTimeout(600_000);

const [image, nextImage] = ['kindred.local/operator:1', 'kindred.local/operator:2'] as const;
const version = pulumiVersion();
if (version === undefined)
  console.log('skipped: there is no working `pulumi` on PATH, so it installed no operator in pods');

describeOnNodes('the operator in pods, installed by Pulumi', () => {
  const plane = useControlPlane({ nodes: 2 });
  const env = new TestEnv(plane);
  const operator = new OperatorPods(plane, 'kindred-operator', 'kindred-system');

  beforeAll(async () => {
    env.client = await kubeconfigClient(plane.adminKubeconfig);
    const folder = temporaryFolder('kindred-pulumi-pods-');
    for (const tag of [image, nextImage]) await importOperatorImage(plane, { folder, tag });
  });
  afterAll(() => env.close());

  /** Whether both pods run an image, and make a HelloApp Ready. */
  async function expectWorking(running: string): Promise<void> {
    const pods = await operator.pods();
    expect(pods.map((pod) => [isReadyPod(pod), pod.status?.containerStatuses?.[0]?.image])).toEqual([
      [true, running],
      [true, running],
    ]);
    const ref = { namespace: await env.namespace('pulumi'), name: 'hello' };
    await env.createOfKind(HelloApp, ref, { image: serverImage, size: 1 });
    await expectChildren(env, HelloApp, await env.waitUntil(HelloApp.type, ref, 'Ready', isReadyNow));
    await env.deleteAndWait(HelloApp.type, ref);
  }

  test('by the component: `up` ends when the pods are ready, also after a change of the image, and not before', async () => {
    const engine = new Engine({ providers: [kubernetesProvider()] });
    const program =
      (operatorImage: string, timeoutSeconds = 300) =>
      () => {
        const kubeconfig = readFileSync(plane.adminKubeconfig, 'utf8');
        const operators = [{ name: 'operator', image: operatorImage, kinds: [HelloApp] }];
        new PlatformComponent('kindred', { kubeconfig, operators, timeoutSeconds });
        return {};
      };
    await engine.up(program(image));
    await expectWorking(image);
    await engine.up(program(nextImage));
    await expectWorking(nextImage);
    expect((await engine.up(program(nextImage))).summary).toEqual([]);

    // An image that nobody has: the update fails, and the pods of before go on.
    await expect(engine.up(program('kindred.local/absent:1', 5))).rejects.toThrow('kindred-operator');
    const [one, two] = (await operator.pods()).filter(isReadyPod);
    expect([one, two].map((pod) => pod?.status?.containerStatuses?.[0]?.image)).toEqual([nextImage, nextImage]);
    await engine.up(program(image));
    await expectWorking(image);
    await engine.destroy();
    expect(await operator.kubectl('get', 'deployments', '-o', 'name')).toBe('');
  });

  (version === undefined ? test.skip : test)('by the stack, under the real CLI', async () => {
    const stack = new RealStack();
    try {
      await stack.init({ operatorImage: image }, { kubeconfig: readFileSync(plane.adminKubeconfig, 'utf8') });
      await stack.up();
      await expectWorking(image);
      await stack.set('operatorImage', nextImage);
      expect(await stack.up()).toEqual({ update: 1 });
      await expectWorking(nextImage);
      await stack.destroy();
    } finally {
      stack.remove();
    }
  });
});
