import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pushImage } from '../../image/publish';
import type { PushSummary } from '../../image/publish';
import { parseReference } from '../../image/reference';
import { Registry } from '../../image/registry';
import { user } from '../support/registry';
import { temporaryFolder } from '../support/temporary-folder';
import { tinyImage } from './images';

const folder = temporaryFolder('kindred-registry-');
const open: Registry[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((registry) => registry.close()));
});

let clients = 0;
/** A client with an empty cache, and Docker's configuration of {@link dockerConfig}. */
export function clientOf(host: string, config = 'none', env: NodeJS.ProcessEnv = {}): Registry {
  clients += 1;
  const environment = { ...process.env, DOCKER_CONFIG: join(folder, config), ...env };
  const registry = new Registry(host, { cacheFolder: join(folder, `cache${clients}`), env: environment });
  open.push(registry);
  return registry;
}

/** The path of Docker's configuration with this name. */
export function dockerConfigPath(name: string): string {
  return join(folder, name, 'config.json');
}

/** Writes a configuration of Docker's. @returns its name */
export function dockerConfig(name: string, config: unknown): string {
  mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(dockerConfigPath(name), typeof config === 'string' ? config : JSON.stringify(config));
  return name;
}

/** The test user's name and a password, as Docker's configuration has them. */
export const auth = (password: string): string => Buffer.from(`${user.name}:${password}`).toString('base64');

export async function push(registry: Registry, path: string, text?: string): Promise<PushSummary> {
  return pushImage(registry, parseReference(`${registry.host}/${path}`), await tinyImage(text));
}

/** The message of an error, which must not show a secret. */
export async function messageOf(failing: Promise<unknown>): Promise<string> {
  const error = await failing.then(
    () => new Error('it did not fail'),
    (caught: unknown) => caught as Error,
  );
  const shown = `${error.message}\n${error.stack ?? ''}\n${String((error.cause as Error | undefined)?.message)}`;
  for (const secret of [user.password, user.refreshToken, 'wr0ng', auth(user.password)])
    expect(shown).not.toContain(secret);
  return error.message;
}

/** Serves HTTP on this machine while `run` runs. */
export async function withServer(listener: RequestListener, run: (host: string) => Promise<void>): Promise<void> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await run(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
