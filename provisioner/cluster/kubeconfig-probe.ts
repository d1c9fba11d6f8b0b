import { X509Certificate } from 'node:crypto';
import { load as loadYaml } from 'js-yaml';
import { z } from 'zod';
import type { ObjectKeyRef } from '../../constructs/kind/reads';
import type { ApiClient } from '../../operator/client/api-client';
import { ApiError, TransportError } from '../../operator/client/errors';
import { createApiClient } from '../../operator/client/http-api-client';
import { clusterAccessFromText } from '../../operator/client/kubeconfig';
import { PlanError, type PlanResult, type PlanRun } from '../../operator/effects/plan-runner';
import { printable } from '../../provision/task/script-io';

/** A certificate that expires sooner than this causes a warning, in milliseconds: 30 days. */
const EXPIRES_SOON_MS = 30 * 86_400_000;

/** Longest version in the status, and longest quotation of a server's message, in characters. */
const MAX_VERSION = 64;
const MAX_WORDS = 512;
/** Longest response, in bytes. A version takes a few hundred. */
const MAX_ANSWER_BYTES = 64 * 1024;

interface ProbeInput {
  readonly file?: string;
  readonly secret?: ObjectKeyRef;
}

/** What a probe needs besides its run. */
interface ProbeOptions {
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: () => number;
}

/**
 * The plan `kubeconfig.probe`: checks a kubeconfig against the allow-list and requests the version of its API
 * server.
 *
 * @throws PlanError `ErrKubeconfig` for a rejected kubeconfig, `ErrUnauthorized` for a response of 401 or
 *   403, `ErrUnreachable` for any other error response, and for none
 */
export async function probeKubeconfig(run: PlanRun, { nowMs }: ProbeOptions): Promise<PlanResult> {
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
    // The server that responds need not be Kubernetes.
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
      // Messages of TLS quote the names in the server's certificate.
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

/** An error without the library's message, which may quote keys and certificates. */
function unusable(source: string, status: Readonly<Record<string, unknown>>, cause: unknown): PlanError {
  const message = `The kubeconfig in ${source} cannot be used: its certificates, its key or its token are none that fit together.`;
  return new PlanError('ErrKubeconfig', message, { status, cause });
}

/** What a kubeconfig says without a request to the server. */
interface KubeconfigFacts {
  readonly server: string;
  /** When the earliest of its certificates expires. */
  readonly certificateExpiry?: Date;
}

/**
 * Checks a kubeconfig against the allow-list.
 *
 * @param source - names it in errors
 * @throws PlanError `ErrKubeconfig` naming every rejected field, and no value
 * @testonly
 */
export function readKubeconfig(text: string, source: string): KubeconfigFacts {
  const parsed = kubeconfig.safeParse(parse(text, source));
  if (!parsed.success) {
    const problems = [...new Set(parsed.error.issues.flatMap(describeIssue))];
    const rest = problems.length > MAX_PROBLEMS ? `; and ${problems.length - MAX_PROBLEMS} more` : '';
    throw refused(source, `${problems.slice(0, MAX_PROBLEMS).join('; ')}${rest}`);
  }
  const { clusters, contexts, users, 'current-context': current } = parsed.data;
  const context = contexts.find(({ name }) => name === current)?.context;
  if (context === undefined) throw refused(source, 'there is no context of the name in current-context');
  const cluster = clusters.find(({ name }) => name === context.cluster)?.cluster;
  if (cluster === undefined) throw refused(source, 'its context names a cluster that it does not define');
  const user = users.find(({ name }) => name === context.user)?.user;
  const expiry = earliest(
    [cluster['certificate-authority-data'], user?.['client-certificate-data']].flatMap((data) =>
      data === undefined ? [] : certificates(data, source),
    ),
  );
  return { server: cluster.server, ...(expiry === undefined ? {} : { certificateExpiry: expiry }) };
}

function parse(text: string, source: string): unknown {
  try {
    return loadYaml(text);
  } catch {
    // The parser's message quotes the text, including keys and tokens.
    throw refused(source, 'it is no YAML');
  }
}

const pem = z
  .string()
  .max(262_144)
  .regex(/^[A-Za-z0-9+/=\s]*$/);

/**
 * The allow-list: the fields with which a kubeconfig reaches a server by its own content. All others are
 * rejected: `exec` and `auth-provider` run programs, `tokenFile`, `certificate-authority` and the like read
 * files of the provisioner, `proxy-url` leads elsewhere, and insecure TLS trusts any server.
 * Source: `k8s.io/client-go/tools/clientcmd/api/v1`.
 */
const kubeconfig = z.strictObject({
  apiVersion: z.literal('v1').optional(),
  kind: z.literal('Config').optional(),
  preferences: z.strictObject({}).optional(),
  'current-context': z.string().min(1),
  clusters: z
    .array(
      z.strictObject({
        name: z.string(),
        cluster: z.strictObject({
          // Written by RKE and read by no client. Source: getKubeConfigX509WithData of RKE 1.x
          // (pki/kubeconfig.go).
          'api-version': z.literal('v1').optional(),
          server: z.string().max(2048).refine(isServer, {
            error: 'must be an address that begins with https://, without user, query and fragment',
          }),
          'certificate-authority-data': pem.optional(),
          'tls-server-name': z.string().optional(),
        }),
      }),
    )
    .min(1)
    .max(64),
  contexts: z
    .array(
      z.strictObject({
        name: z.string(),
        context: z.strictObject({ cluster: z.string(), user: z.string(), namespace: z.string().optional() }),
      }),
    )
    .min(1)
    .max(64),
  users: z
    .array(
      z.strictObject({
        name: z.string(),
        user: z.strictObject({
          'client-certificate-data': pem.optional(),
          'client-key-data': pem.optional(),
          token: z.string().max(65_536).optional(),
        }),
      }),
    )
    .max(64),
});

function isServer(text: string): boolean {
  if (!text.startsWith('https://') || !URL.canParse(text)) return false;
  const { username, password, search, hash } = new URL(text);
  return [username, password, search, hash].every((part) => part === '');
}

/** Rejected fields that errors may name. Any other name may be a secret in the wrong place. */
const KNOWN_FIELDS: ReadonlySet<string> = new Set([
  ...['exec', 'auth-provider', 'tokenFile', 'client-certificate', 'client-key', 'certificate-authority', 'proxy-url'],
  ...['insecure-skip-tls-verify', 'disable-compression', 'extensions', 'username', 'password', 'colors'],
  ...['as', 'as-uid', 'as-groups', 'as-user-extra', 'impersonate-user'],
]);

/** Number of problems that one message lists. */
const MAX_PROBLEMS = 20;

/** Messages for one issue of zod. They name fields and types; those that would quote a value are replaced. */
function describeIssue(issue: z.core.$ZodIssue): readonly string[] {
  const path = issue.path.map(String).join('.');
  const at = (key: string): string => (path === '' ? key : `${path}.${key}`);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => `${at(KNOWN_FIELDS.has(key) ? key : 'a field that is not known')} is not allowed`);
  }
  return [`${path === '' ? 'it' : path}: ${issue.message}`];
}

function certificates(data: string, source: string): readonly X509Certificate[] {
  const text = Buffer.from(data, 'base64').toString('latin1');
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    throw refused(source, 'a certificate in it cannot be read');
  }
}

function earliest(found: readonly X509Certificate[]): Date | undefined {
  const times = found.map(({ validTo }) => Date.parse(validTo)).filter((time) => !Number.isNaN(time));
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}

function refused(source: string, why: string): PlanError {
  return new PlanError(
    'ErrKubeconfig',
    `The kubeconfig in ${source} is refused: ${why}. Allowed is what leads to a server by itself: an https server, ` +
      'certificate-authority-data, client-certificate-data, client-key-data, token.',
    { isTerminal: true },
  );
}
