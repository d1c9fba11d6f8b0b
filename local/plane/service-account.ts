import { LocalControlPlaneError } from '../errors';
import { describe, type RestClient } from './rest';

/** Names a ServiceAccount. */
export interface ServiceAccountRef {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Asks for a token of a ServiceAccount (TokenRequest); nothing is created.
 *
 * @param expirationSeconds - how long it is good for; the API server takes no less than 600
 * @throws LocalControlPlaneError when the ServiceAccount does not exist or the request is refused
 */
export async function requestToken(
  rest: RestClient,
  { namespace, name }: ServiceAccountRef,
  expirationSeconds: number,
): Promise<string> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/serviceaccounts/${encodeURIComponent(name)}/token`;
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds } };
  const answer = await rest.ask('POST', path, { body });
  if (answer.status === 404) {
    throw new LocalControlPlaneError(
      `cannot make a kubeconfig for the ServiceAccount ${namespace}/${name}: it does not exist. Create it first ` +
        `(kubectl create serviceaccount ${name} -n ${namespace}).`,
    );
  }
  const token = (answer.body as { status?: { token?: string } }).status?.token;
  if (answer.status < 300 && token !== undefined) return token;
  throw new LocalControlPlaneError(`no token for the ServiceAccount ${namespace}/${name}: ${describe(answer)}`);
}
