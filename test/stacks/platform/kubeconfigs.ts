import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { minifyKubeconfig } from '../../../stacks/kubeconfig';
import { MemoryCluster } from '../../support/pulumi-engine';
import { temporaryFolder } from '../../support/temporary-folder';

const cluster = new MemoryCluster('https://a.test');

/** A kubeconfig with the contexts `a` and `prod`. */
export const KUBECONFIG = MemoryCluster.kubeconfig({ a: cluster, prod: cluster }, 'CANARY-token');

/** What a provider is told of it. */
export const MINIMAL = minifyKubeconfig({ text: KUBECONFIG });

/** In the tests of this file, `KUBECONFIG` of the environment names a file with {@link KUBECONFIG}. */
export function useKubeconfigFile(): void {
  const before = process.env['KUBECONFIG'];
  beforeAll(() => {
    const file = join(temporaryFolder('kindred-kubeconfig-'), 'config');
    writeFileSync(file, KUBECONFIG);
    process.env['KUBECONFIG'] = file;
  });
  afterAll(() => {
    if (before === undefined) delete process.env['KUBECONFIG'];
    else process.env['KUBECONFIG'] = before;
  });
}
