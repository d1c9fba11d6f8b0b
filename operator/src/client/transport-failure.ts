import { TransportError } from './errors';

/** What a person can do about the failures met most. Sources: Node's error codes, OpenSSL's verification errors. */
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'is the API server running, and is the server address of the kubeconfig right?',
  ENOTFOUND: 'the host name is unknown; check the server address of the kubeconfig and DNS',
  EAI_AGAIN: 'DNS did not answer; check the network',
  EHOSTUNREACH: 'there is no route to the host; check the network, VPN or firewall',
  ENETUNREACH: 'there is no route to the network; check the network, VPN or firewall',
  ETIMEDOUT: 'the host did not answer; check the network, VPN or firewall',
  UND_ERR_CONNECT_TIMEOUT: 'the host did not answer; check the network, VPN or firewall',
  CERT_HAS_EXPIRED: "the server's certificate has expired; renew it",
  DEPTH_ZERO_SELF_SIGNED_CERT:
    "the server's certificate is not trusted; check certificate-authority-data of the kubeconfig",
  SELF_SIGNED_CERT_IN_CHAIN:
    "the server's certificate is not trusted; check certificate-authority-data of the kubeconfig",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "the server's certificate is not trusted; check certificate-authority-data of the kubeconfig",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "the server's certificate is not trusted; check certificate-authority-data of the kubeconfig",
  ERR_TLS_CERT_ALTNAME_INVALID: "the server's certificate is for other names; check the address or tls-server-name",
};

/** A text property of an error, whichever realm it was made in (tests run in one of their own). */
function textOf(error: unknown, property: 'code' | 'message'): string {
  const value: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, property) : undefined;
  return typeof value === 'string' ? value : '';
}

/** The code of a system, TLS or undici error, or the empty string. */
export function errorCode(error: unknown): string {
  return textOf(error, 'code');
}

/** The message of an error, or whatever was thrown, as text. */
export function errorMessage(error: unknown): string {
  return textOf(error, 'message') || String(error);
}

/** Says what failed, where, why and, where it is known, what to do. */
export function transportFailure(request: string, server: string, cause: unknown): TransportError {
  const code = errorCode(cause);
  // Node's error for a host of several addresses has a code, but no message.
  const why = textOf(cause, 'message') || code || 'unknown failure';
  const advice = ADVICE[code];
  const message = `${request} at ${server} failed: ${why}${advice === undefined ? '' : `; ${advice}`}`;
  return new TransportError(message, request, { cause });
}
