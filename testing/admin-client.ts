import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import type { ApiClient } from '../operator/client/api-client';
import { staticAccess } from '../operator/client/cluster-access';
import { createApiClient } from '../operator/client/http-api-client';

interface Kubeconfig {
  readonly clusters: readonly [
    { readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string } },
  ];
  readonly users: readonly [
    { readonly user: { readonly 'client-certificate-data': string; readonly 'client-key-data': string } },
  ];
}

/**
 * A client with the client certificate of a kubeconfig's only user, with which tests read and change objects.
 */
export async function adminClient(kubeconfig: string): Promise<ApiClient> {
  const { clusters, users } = parse(await readFile(kubeconfig, 'utf8')) as Kubeconfig;
  const { cluster } = clusters[0];
  const { user } = users[0];
  const tls = {
    ca: decoded(cluster['certificate-authority-data']),
    cert: decoded(user['client-certificate-data']),
    key: decoded(user['client-key-data']),
  };
  return createApiClient(staticAccess(cluster.server, { headers: {}, tls }));
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}
