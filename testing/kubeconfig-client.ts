import { readFile } from 'node:fs/promises';
import { load } from 'js-yaml';
import type { ApiClient } from '../operator/client/api-client';
import { staticAccess } from '../operator/client/cluster-access';
import { createApiClient, type HttpApiClientOptions } from '../operator/client/http-api-client';

interface Kubeconfig {
  readonly clusters: readonly [
    { readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string } },
  ];
  readonly users: readonly [
    {
      readonly user: {
        readonly token?: string;
        readonly 'client-certificate-data'?: string;
        readonly 'client-key-data'?: string;
      };
    },
  ];
}

/**
 * A client with the token, or the client certificate, of a kubeconfig's only user, as the local control plane writes it.
 *
 * `loadClusterAccess` would read any kubeconfig, but by `@kubernetes/client-node`, an ES module, which Jest cannot require.
 */
export async function kubeconfigClient(kubeconfig: string, options: HttpApiClientOptions = {}): Promise<ApiClient> {
  const { clusters, users } = load(await readFile(kubeconfig, 'utf8')) as Kubeconfig;
  const { cluster } = clusters[0];
  const { token, 'client-certificate-data': certificate, 'client-key-data': key } = users[0].user;
  const tls = {
    ca: decoded(cluster['certificate-authority-data']),
    ...(certificate !== undefined && key !== undefined && { cert: decoded(certificate), key: decoded(key) }),
  };
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return createApiClient(staticAccess(cluster.server, { headers, tls }), options);
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}
