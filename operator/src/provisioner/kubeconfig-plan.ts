import { printable } from '../../../provision/task/script-io';
import { clusterAccessFromText } from '../../client/kubeconfig';
import { createApiClient } from '../../client/http-api-client';
import type { ApiClient } from '../../client/api-client';
import { ApiError, TransportError } from '../../client/errors';
import type { ObjectKeyRef } from '../../../constructs/kind/reads';
import { PlanError, type PlanEnd, type PlanRun } from '../../effects/plan-runner';
import { readKubeconfig } from './kubeconfig-file';

/** Sooner than this, a certificate's expiry is worth a warning, in milliseconds: 30 days. */
const EXPIRES_SOON_MS = 30 * 86_400_000;

/** Longest version that the status holds, and longest quotation of a server's words, in characters. */
const MAX_VERSION = 64;
const MAX_WORDS = 512;
/** A version is a few hundred bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;

interface ProbeInput {
  readonly file?: string;
  readonly secret?: ObjectKeyRef;
}

/** What a probe needs besides its run. */
export interface ProbeOptions {
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: () => number;
}

/**
 * The plan `kubeconfig.probe`: reads a kubeconfig against the allow-list and asks the API behind it for its version.
 *
 * Errors: PlanError `ErrKubeconfig` for one that is refused, `ErrUnreachable` when nothing answers, `ErrUnauthorized` when the answer is no.
 */
export async function probeKubeconfig(run: PlanRun, { nowMs }: ProbeOptions): Promise<PlanEnd> {
  const input = run.run.input as unknown as ProbeInput;
  const { text, source } = await textOf(run, input);
  const { server, certificateExpiry } = readKubeconfig(text, source);
  const facts = {
    server,
    ...(certificateExpiry === undefined
      ? {}
      : { certificateExpiry: `${certificateExpiry.toISOString().slice(0, 19)}Z` }),
  };
  if (certificateExpiry !== undefined && certificateExpiry.getTime() - nowMs() < EXPIRES_SOON_MS) {
    const gone = certificateExpiry.getTime() <= nowMs();
    run.warn({
      reason: gone ? 'CertificateExpired' : 'CertificateExpires',
      message: `A certificate of the kubeconfig ${gone ? 'expired' : 'expires'} on ${facts.certificateExpiry ?? ''}. Renew it.`,
    });
  }
  const kubernetesVersion = await askVersion(run, text, source, facts);
  return { message: `The API at ${server} answers: ${kubernetesVersion}.`, status: { ...facts, kubernetesVersion } };
}

async function textOf(run: PlanRun, { file, secret }: ProbeInput): Promise<{ text: string; source: string }> {
  if (secret !== undefined) {
    const source = `Secret ${secret.namespace ?? ''}/${secret.name}, key ${secret.key}`;
    return { text: await run.secret(secret), source };
  }
  const path = file ?? '';
  return { text: await run.file(path), source: `the file "${path}"` };
}

async function askVersion(
  run: PlanRun,
  text: string,
  source: string,
  status: Readonly<Record<string, unknown>>,
): Promise<string> {
  const client = clientFor(text, source, status);
  try {
    const version = (await client.getPath('/version', { signal: run.timeout, timeoutMs: 10_000 })) as {
      readonly gitVersion?: unknown;
    };
    // Whoever answers there need not be Kubernetes.
    return typeof version.gitVersion === 'string'
      ? printable(version.gitVersion, MAX_VERSION)
      : 'of an unknown version';
  } catch (cause) {
    if (cause instanceof ApiError) {
      const reason = cause.code === 401 || cause.code === 403 ? 'ErrUnauthorized' : 'ErrUnreachable';
      const said = printable(cause.message, MAX_WORDS);
      throw new PlanError(reason, `The API answers ${cause.code}: ${said}`, { status, cause });
    }
    if (cause instanceof TransportError) {
      // What TLS says quotes the names in the server's certificate.
      throw new PlanError('ErrUnreachable', printable(cause.message, MAX_WORDS), { status, cause });
    }
    throw unusable(source, status, cause);
  } finally {
    await client.close();
  }
}

function clientFor(text: string, source: string, status: Readonly<Record<string, unknown>>): ApiClient {
  try {
    return createApiClient(clusterAccessFromText(text, source), { maxResponseBytes: MAX_ANSWER_BYTES });
  } catch (cause) {
    throw unusable(source, status, cause);
  }
}

/** What the libraries say about keys and certificates may quote them. */
function unusable(source: string, status: Readonly<Record<string, unknown>>, cause: unknown): PlanError {
  const message = `The kubeconfig in ${source} cannot be used: its certificates, its key or its token are none that fit together.`;
  return new PlanError('ErrKubeconfig', message, { status, cause });
}
