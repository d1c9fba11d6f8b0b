import { stringify } from 'yaml';

/** How a kubeconfig's user proves who it is: a client certificate with its key (PEM), or a bearer token. */
export type Credentials = { readonly certificate: string; readonly key: string } | { readonly token: string };

/** What a kubeconfig says. */
export interface KubeconfigContent {
  readonly server: string;
  /** The authority that signed the server's certificate, PEM. */
  readonly authority: string;
  readonly user: string;
  readonly credentials: Credentials;
  /** The namespace of requests that name none. @default default */
  readonly namespace?: string;
}

/** A kubeconfig with one context, as YAML; certificates stand inside it, so the file can be copied anywhere. */
export function kubeconfig(content: KubeconfigContent): string {
  const { credentials } = content;
  const user =
    'token' in credentials
      ? { token: credentials.token }
      : {
          'client-certificate-data': base64(credentials.certificate),
          'client-key-data': base64(credentials.key),
        };
  const cluster = 'kindred-local';
  return stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: cluster,
          cluster: { server: content.server, 'certificate-authority-data': base64(content.authority) },
        },
      ],
      users: [{ name: content.user, user }],
      contexts: [
        { name: cluster, context: { cluster, user: content.user, namespace: content.namespace ?? 'default' } },
      ],
      'current-context': cluster,
    },
    { lineWidth: 0 },
  );
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}
