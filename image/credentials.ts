import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { codeOf, messageOf } from '../local/assets/errors';
import { ImageError, MAX_DOCUMENT_BYTES, readAll } from './oci';

/** Credentials for a registry. */
export interface Credentials {
  /** Where they come from, for messages: a file or a program. */
  readonly source: string;
  readonly secret:
    | { readonly type: 'password'; readonly username: string; readonly password: string }
    /** An OAuth2 refresh token, which some `docker login` store. */
    | { readonly type: 'identity-token'; readonly token: string };
}

const optional = <T>(schema: z.ZodType<T>) => schema.nullish().transform((value) => value ?? undefined);
const text = optional(z.string());

/** An entry of `auths`. `auth` is base64 of `user:password`. */
const storedAuth = z.object({ auth: text, username: text, password: text, identitytoken: text });
type StoredAuth = z.output<typeof storedAuth>;

/** The parts of Docker's config.json that are read here. Programs in Go write null for what is empty. */
const dockerConfig = z.object({
  auths: optional(z.record(z.string(), optional(storedAuth))),
  credsStore: text,
  credHelpers: optional(z.record(z.string(), text)),
});
type DockerConfig = z.output<typeof dockerConfig>;

/** Docker's configuration: `config.json` in `$DOCKER_CONFIG`, or in `~/.docker`. */
export function dockerConfigFile(env: NodeJS.ProcessEnv = process.env): string {
  return path.join(env['DOCKER_CONFIG'] || path.join(homedir(), '.docker'), 'config.json');
}

/**
 * The user's credentials for a registry, as `docker login` stored them: in Docker's configuration, or in the store of a
 * credential helper, which is asked.
 *
 * @param host the registry as references name it: `docker.io`
 * @returns undefined when there are none
 * @throws ImageError when the configuration or a helper does not work
 */
export async function dockerCredentials(
  host: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Credentials | undefined> {
  const file = dockerConfigFile(env);
  const { auths = {}, credsStore, credHelpers = {} } = await readConfig(file);
  // Docker Hub has had this name since its first version.
  const server = host === 'docker.io' ? 'https://index.docker.io/v1/' : host;
  const helper = credHelpers[host] ?? credHelpers[server] ?? credsStore;
  if (helper) {
    const found = await askHelper(helper, server, { file, env });
    if (found !== undefined) return found;
  }
  const keys = Object.keys(auths).filter((name) => hostOf(name) === host && name !== server);
  for (const key of [server, ...keys]) {
    const stored = auths[key];
    const credentials = stored === undefined ? undefined : storedCredentials(stored, host, file);
    if (credentials !== undefined) return credentials;
  }
  return undefined;
}

function storedCredentials(stored: StoredAuth, host: string, file: string): Credentials | undefined {
  const { auth, identitytoken } = stored;
  if (identitytoken) return { source: file, secret: { type: 'identity-token', token: identitytoken } };
  if (!auth) {
    const { username, password } = stored;
    if (!username || !password) return undefined;
    return { source: file, secret: { type: 'password', username, password } };
  }
  // Docker pads passwords with zero bytes when it writes some of them.
  const decoded = Buffer.from(auth, 'base64').toString().replace(/\0+$/, '');
  const [, username, password] = /^([^:]*):(.*)$/s.exec(decoded) ?? [];
  if (username === undefined || password === undefined) {
    throw new ImageError(`the credentials for ${host} in ${file} cannot be read. Run: docker login ${host}`);
  }
  return { source: file, secret: { type: 'password', username, password } };
}

/** Older versions of Docker wrote URLs. */
function hostOf(key: string): string {
  return key.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
}

async function readConfig(file: string): Promise<DockerConfig> {
  const fail = (problem: string): never => {
    throw new ImageError(`${file}, Docker's configuration with your credentials, ${problem}. Correct it.`);
  };
  const content = await readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return '{}';
    return fail(`cannot be read (${codeOf(error) ?? messageOf(error)})`);
  });
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    // Without the reason of JSON.parse: it quotes the text, which may hold a password.
    return fail('is not valid JSON');
  }
  const parsed = dockerConfig.safeParse(value ?? {});
  const [issue] = parsed.success ? [] : parsed.error.issues;
  // Of the issue only the path: the message may quote a value.
  return parsed.data ?? fail(`is not as Docker writes it, at ${issue?.path.slice(0, 1).join('') || 'its root'}`);
}

/** What a credential helper prints. */
const helperAnswer = z.object({ Username: text, Secret: text });

/** Its stdout is never shown, because it holds the secret. */
async function askHelper(
  helper: string,
  server: string,
  { file, env }: { readonly file: string; readonly env: NodeJS.ProcessEnv },
): Promise<Credentials | undefined> {
  const program = `docker-credential-${helper}`;
  const fail = (problem: string, advice = 'Log in again with what this helper is for.'): never => {
    throw new ImageError(`the credential helper ${program}, which ${file} names, ${problem}. ${advice}`);
  };
  if (!/^[\w.-]+$/.test(helper)) fail('is not the name of a program', `Correct ${file}.`);
  const { code, stdout, lastLine } = await runHelper(program, server, env).catch((error: unknown) => {
    const isMissing = codeOf(error) === 'ENOENT';
    return fail(
      isMissing ? 'is not on PATH' : `cannot be run: ${messageOf(error)}`,
      'Install it, or correct the file.',
    );
  });
  // The words of Docker's own helpers, which are part of their protocol.
  if (code !== 0 && /credentials not found/i.test(stdout)) return undefined;
  if (code === TIMED_OUT) fail(`did not answer within ${HELPER_SECONDS} s`);
  if (code !== 0) fail(`failed with exit code ${code}${lastLine === '' ? '' : ` (${lastLine})`}`);
  const answer = parseAnswer(stdout) ?? fail('printed no credentials', 'See its documentation.');
  const { Username: username = '', Secret: secret = '' } = answer;
  if (username === '' && secret === '') return undefined;
  if (username === '<token>') return { source: program, secret: { type: 'identity-token', token: secret } };
  return { source: program, secret: { type: 'password', username, password: secret } };
}

function parseAnswer(stdout: string): z.output<typeof helperAnswer> | undefined {
  try {
    return helperAnswer.safeParse(JSON.parse(stdout)).data;
  } catch {
    // Shown without its text.
    return undefined;
  }
}

/** A helper may ask a person, or a cloud. */
const HELPER_SECONDS = 60;
const TIMED_OUT = 'timeout';

interface HelperResult {
  readonly code: number | typeof TIMED_OUT;
  readonly stdout: string;
  /** The last line of its stderr, which says why it failed. */
  readonly lastLine: string;
}

async function runHelper(program: string, server: string, env: NodeJS.ProcessEnv): Promise<HelperResult> {
  const timeout = AbortSignal.timeout(HELPER_SECONDS * 1000);
  // A process group of its own, so that what it starts ends with it.
  const child = spawn(program, ['get'], { env, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  timeout.addEventListener('abort', () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  });
  const exited = new Promise<HelperResult['code']>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(timeout.aborted ? TIMED_OUT : (code ?? (signal === null ? 1 : 128))));
  });
  // A helper may end without reading its stdin; its exit code tells whether it failed.
  child.stdin.on('error', () => undefined);
  child.stdin.end(server);
  const [code, stdout, stderr] = await Promise.all([
    exited,
    readAll(child.stdout, MAX_DOCUMENT_BYTES),
    readAll(child.stderr, MAX_DOCUMENT_BYTES),
  ]);
  const lines = stderr.toString().trim().split('\n');
  const lastLine = (lines.at(-1) ?? '').replaceAll(/\p{Cc}+/gu, ' ').slice(0, 300);
  return { code, stdout: stdout.toString(), lastLine };
}
