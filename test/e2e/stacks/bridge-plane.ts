import { readFileSync } from 'node:fs';
import { Provider, type ProviderArgs } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';
import { ApiObject, type Chart } from 'cdk8s';
import { useControlPlane } from '../../support/use-control-plane';
import { kubectl } from '../../../testing/kubectl';
import { Engine, kubernetesProvider } from '../../support/pulumi-engine';

/** The control plane of a file about the bridge. */
export const plane = useControlPlane({ components: 'full' });
export const minutes = 60_000;

/** One object of a kind; its construct id is the kind's name. */
export function object(
  chart: Chart,
  apiVersion: string,
  kind: string,
  name: string,
  rest: object,
  inside = true,
): ApiObject {
  const metadata = { name, ...(inside ? { namespace: 'bridge' } : {}) };
  return new ApiObject(chart, kind, { apiVersion, kind, metadata, ...rest });
}

export const pod = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'web', image: 'registry.test/web:1', ports: [{ containerPort: 80 }] }] },
};

export function providerOf(args: ProviderArgs = {}): Provider {
  const kubeconfig = pulumi.secret(readFileSync(plane.adminKubeconfig, 'utf8'));
  return new Provider('cluster', { kubeconfig, ...args });
}

export function newEngine(state?: string): Engine {
  return new Engine({ providers: [kubernetesProvider()], ...(state === undefined ? {} : { state }) });
}

export async function run(args: readonly string[]): Promise<string> {
  const { stdout, stderr, code } = await kubectl(plane, args);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

export async function get(args: readonly string[]): Promise<unknown> {
  return JSON.parse(await run(['get', '-o', 'json', ...args])) as unknown;
}

export async function missing(args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await kubectl(plane, ['get', '--ignore-not-found', '-o', 'name', ...args]);
  return stdout + stderr;
}
