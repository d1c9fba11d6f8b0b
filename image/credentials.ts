import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { codeOf, messageOf, undefinedIfMissing } from '../local/assets/errors';
import { ImageError, readAll } from './oci';

/** Credentials for a registry. */
export interface Credentials {
  /** Where they come from, for messages: a file or a program. */
  readonly source: string;
  readonly secret:
    | { readonly type: 'password'; readonly username: string; readonly password: string }
    /** An OAuth2 refresh token, which some `docker login` store. */
    | { readonly type: 'identity-token'; readonly token: string };
}

/** The parts of Docker's config.json that are read here. */
interface DockerConfig {
  readonly auths?: Readonly<Record<string, StoredAuth>>;
  readonly credsStore?: string;
  readonly credHelpers?: Readonly<Record<string, string>>;
}

/** An entry of `auths`. */
interface StoredAuth {
  /** Base64 of `user:password`. */
  readonly auth?: string;
  readonly username?: string;
  readonly password?: string;
  readonly identitytoken?: string;
}

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
  const key = Object.keys(auths).find((name) => name === server || hostOf(name) === host);
  return key === undefined ? undefined : storedCredentials(auths[key] ?? {}, host, file);
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
  const text = await readFile(file, 'utf8').catch(undefinedIfMissing);
  if (text === undefined) return {};
  try {
    return JSON.parse(text) as DockerConfig;
  } catch {
    // Without the reason of JSON.parse: it quotes the text, which may hold a password.
    throw new ImageError(`${file}, Docker's configuration with your credentials, is not valid JSON. Correct it.`);
  }
}

/** What a credential helper prints. */
interface HelperAnswer {
  readonly Username?: string;
  readonly Secret?: string;
}

/** Its stdout is never shown, because it holds the secret. */
async function askHelper(
  helper: string,
  server: string,
  { file, env }: { readonly file: string; readonly env: NodeJS.ProcessEnv },
): Promise<Credentials | undefined> {
  const program = `docker-credential-${helper}`;
  const fail = (problem: string, advice = `Run: docker login ${hostOf(server)}`): never => {
    throw new ImageError(`the credential helper ${program}, which ${file} names, ${problem}. ${advice}`);
  };
  if (!/^[\w.-]+$/.test(helper)) fail('is not the name of a program', `Correct ${file}.`);
  const { code, stdout } = await runHelper(program, server, env).catch((error: unknown) => {
    const isMissing = codeOf(error) === 'ENOENT';
    return fail(
      isMissing ? 'is not on PATH' : `cannot be run: ${messageOf(error)}`,
      'Install it, or correct the file.',
    );
  });
  // The words of Docker's own helpers, which are part of their protocol.
  if (code !== 0 && /credentials not found/i.test(stdout)) return undefined;
  if (code !== 0) fail(`failed with exit code ${code}`);
  const answer = parseAnswer(stdout) ?? fail('printed no credentials', 'See its documentation.');
  const { Username: username = '', Secret: secret = '' } = answer;
  if (username === '' && secret === '') return undefined;
  if (username === '<token>') return { source: program, secret: { type: 'identity-token', token: secret } };
  return { source: program, secret: { type: 'password', username, password: secret } };
}

function parseAnswer(stdout: string): HelperAnswer | undefined {
  try {
    return JSON.parse(stdout) as HelperAnswer;
  } catch {
    // Shown without its text.
    return undefined;
  }
}

async function runHelper(
  program: string,
  server: string,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly code: number; readonly stdout: string }> {
  const child = spawn(program, ['get'], { env, stdio: ['pipe', 'pipe', 'ignore'] });
  const exited = new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? (signal === null ? 1 : 128)));
  });
  // A helper may end without reading its stdin; its exit code tells whether it failed.
  child.stdin.on('error', () => undefined);
  child.stdin.end(server);
  const [code, stdout] = await Promise.all([exited, readAll(child.stdout)]);
  return { code, stdout: stdout.toString() };
}
