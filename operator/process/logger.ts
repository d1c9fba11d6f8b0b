import { pino, stdTimeFunctions, type DestinationStream, type Level, type Logger } from 'pino';

export type { Logger } from 'pino';

/** Levels from most to least; `silent` writes nothing. */
export type LogLevel = Level | 'silent';

/** Options of `createLogger`. */
export interface LoggerOptions {
  /** @default 'info' */
  readonly level?: LogLevel;
  /** @default 'stdout' */
  readonly destination?: 'stdout' | 'stderr' | DestinationStream;
  /** Fields of every line, for example `{ component: 'operator' }`. @default none */
  readonly fields?: Readonly<Record<string, string | number | boolean>>;
}

/**
 * Creates the operator's logger: one JSON object per line; `level` as a word, `time` as ISO 8601 in UTC,
 * `err` with its stack and causes.
 *
 * Guarantees: written synchronously, so nothing is lost when the process exits; known secret fields read
 * `[redacted]`.
 *
 * Caveats: redaction is only a safety net: it knows names, not values. Never log a Secret, a credential or a
 * whole request.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  return pino(
    {
      level: options.level ?? 'info',
      base: { ...options.fields },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: redactPaths, censor: '[redacted]' },
    },
    destinationOf(options.destination ?? 'stdout'),
  );
}

/** An error for the field `err` whose stack has its causes already. */
export function withoutCause({ name, message, stack }: Error): object {
  // Without a prototype the line has the error's name as its type.
  return Object.assign(Object.create(null) as object, { name, message, stack });
}

const secretFields = [
  'authorization',
  'cookie',
  'token',
  'accessToken',
  'access_token',
  'idToken',
  'id_token',
  'refreshToken',
  'refresh_token',
  'password',
  'passphrase',
  'clientSecret',
  'client_secret',
  'privateKey',
  'sshKey',
  'ssh_key',
  'kubeconfig',
  'clientKeyData',
  'stringData',
];

/**
 * What is never written: these fields on the first and second level of a line, headers one deeper, and a
 * Secret's data. Source of the names: kubeconfig, OIDC (RFC 6749), RKE's `cluster.yml`, the Secret API.
 */
const redactPaths = [
  ...secretFields,
  ...secretFields.map((field) => `*.${field}`),
  '["client-key-data"]',
  '*["client-key-data"]',
  ...['headers', '*.headers'].flatMap((headers) => ['authorization', 'cookie'].map((field) => `${headers}.${field}`)),
  'secret.data',
  '*.secret.data',
];

function destinationOf(destination: 'stdout' | 'stderr' | DestinationStream): DestinationStream {
  if (typeof destination !== 'string') return destination;
  return pino.destination({ fd: destination === 'stdout' ? 1 : 2, sync: true });
}
