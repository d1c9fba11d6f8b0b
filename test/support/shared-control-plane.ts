import { createServer, connect } from 'node:net';
import type { Server } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { messageOf } from '../../local/assets/errors';
import type { ControlPlane } from '../../local/control-plane';
import { startControlPlane } from '../../local/start';
import { kubeconfigClient } from '../../testing';

/**
 * One control plane for the test files that need none of their own: etcd and the API server, without controllers.
 *
 * Jest's main process serves it on a socket, and starts it when the first file asks. A file gets a namespace of its own. It must leave
 * cluster-scoped objects of others alone, and must not create any that another file of these creates.
 */
export class SharedControlPlane {
  readonly #folder = mkdtempSync(join(tmpdir(), 'kindred-shared-'));
  readonly #server: Server;
  #plane: Promise<ControlPlane> | undefined;

  private constructor() {
    this.#server = createServer((socket) => {
      this.#plane ??= startControlPlane({ components: 'api' });
      this.#plane.then(
        ({ adminKubeconfig, dataDir }) => socket.end(JSON.stringify({ adminKubeconfig, dataDir } satisfies Address)),
        (error: unknown) => socket.end(JSON.stringify({ error: messageOf(error) })),
      );
    });
  }

  /** Listens; the tests' processes, which start later, know where. */
  static async serve(): Promise<SharedControlPlane> {
    const shared = new SharedControlPlane();
    const path = join(shared.#folder, 'socket');
    await new Promise<void>((resolve, reject) => {
      shared.#server.once('error', reject);
      shared.#server.listen(path, resolve);
    });
    process.env[SOCKET] = path;
    return shared;
  }

  async close(): Promise<void> {
    this.#server.close();
    // A start that failed was reported to those who asked for it.
    const plane = await this.#plane?.catch(() => undefined);
    await plane?.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** What a test file gets of the shared control plane; reading it before `beforeAll` has run throws. */
export interface SharedPlane extends Address {
  /** The file's own namespace. */
  readonly namespace: string;
}

interface Address {
  /** The path of a kubeconfig in `system:masters`. */
  readonly adminKubeconfig: string;
  readonly dataDir: string;
}

const SOCKET = 'KINDRED_TEST_CONTROL_PLANE';
/** The first start on a machine may build the parts, which takes minutes. */
const startTimeoutMs = 20 * 60_000;

/** Gives a Jest file the shared control plane, and a namespace in it. Call it at the top of the file. */
export function useSharedControlPlane(): SharedPlane {
  let address: Address | undefined;
  const namespace = basename(expect.getState().testPath ?? '', '.test.ts');
  beforeAll(async () => {
    address = await addressOf(process.env[SOCKET]);
    const client = await kubeconfigClient(address.adminKubeconfig);
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
    try {
      await client.create({ ...body, plural: 'namespaces', scope: 'Cluster' }, body, { fieldManager: 'e2e' });
    } finally {
      await client.close();
    }
  }, startTimeoutMs);
  const current = (): Address => {
    if (address === undefined) throw new Error('the shared control plane is not there yet: use it in a test or a hook');
    return address;
  };
  return {
    namespace,
    get adminKubeconfig() {
      return current().adminKubeconfig;
    },
    get dataDir() {
      return current().dataDir;
    },
  };
}

async function addressOf(socket: string | undefined): Promise<Address> {
  if (socket === undefined) throw new Error('the end-to-end project of jest.config.js has no globalSetup');
  const answer = JSON.parse(await text(connect(socket))) as Address | { readonly error: string };
  if ('error' in answer) throw new Error(`the shared control plane did not start: ${answer.error}`);
  return answer;
}
