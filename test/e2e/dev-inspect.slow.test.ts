import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { join } from 'node:path';
import { WebSocket } from 'undici';
import { owned } from '../../constructs/kube/resource-type';
import { freePort } from '../../local/ports';
import type { ApiClient } from '../../operator/client/api-client';
import { kubeconfigClient } from '../../testing';
import { waitFor } from '../../testing/wait-for';
import { installKindred } from '../support/project-folder';
import { Start, expectNothingLeft, folder, processesOf, startTimeoutMs } from './dev-process';

jest.setTimeout(startTimeoutMs);

// A debugger, by the protocol that VS Code's speaks: it has the source map, and sets a breakpoint where that leads.

const source = (note: string): string => `import { k8s } from 'cdk8s-plus-27';
import { defineKind, owned } from 'kindred/constructs';
import { z } from 'zod';

export const Note = defineKind({
  group: 'notes.example.com', version: 'v1', kind: 'Note', plural: 'notes', scope: 'Namespaced',
  description: 'A note.',
  spec: z.object({ text: z.string().max(99).describe('The text.') }),
  owns: [owned.ConfigMap],
  samples: [{ name: 'hello', spec: { text: 'hi' } }],
  children(scope, { metadata: { name }, spec }) {
    const data = { note: ${note} };
    new k8s.KubeConfigMap(scope, 'note', { metadata: { name: name + '-note' }, data });
  },
});
`;
/** The line of the source with the breakpoint. */
const line = 13;

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

interface Script {
  readonly url: string;
  readonly scriptId: string;
  readonly sourceMapURL: string;
}

interface Paused {
  readonly callFrames: readonly {
    readonly callFrameId: string;
    readonly functionName: string;
    readonly location: { readonly lineNumber: number; readonly columnNumber: number };
  }[];
}

/** A client of Node.js' inspector. */
class Debugger {
  private readonly received: Message[] = [];
  private sent = 0;

  private constructor(private readonly socket: WebSocket) {
    socket.addEventListener('message', ({ data }) => this.received.push(JSON.parse(String(data)) as Message));
  }

  static async attach(port: number): Promise<Debugger> {
    const [target] = await waitFor(async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/json/list`).catch(() => undefined);
      return (await answer?.json()) as readonly { readonly webSocketDebuggerUrl: string }[] | undefined;
    });
    const socket = new WebSocket(target?.webSocketDebuggerUrl ?? '');
    const debug = new Debugger(socket);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve);
      socket.addEventListener('error', reject);
    });
    await debug.ask('Debugger.enable');
    return debug;
  }

  async ask<T>(method: string, params: object = {}): Promise<T> {
    const id = (this.sent += 1);
    this.socket.send(JSON.stringify({ id, method, params }));
    const answer = await waitFor(() => this.received.find((message) => message.id === id));
    if (answer.error !== undefined) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result as T;
  }

  /** Waits for an event that has not been waited for before. */
  async event<T>(method: string, wanted: (params: T) => boolean = () => true): Promise<T> {
    const find = (): number => this.received.findIndex((one) => one.method === method && wanted(one.params as T));
    await waitFor(() => find() >= 0 || undefined, { describe: method, timeout: 30_000 });
    return this.received.splice(find(), 1)[0]?.params as T;
  }

  close(): void {
    this.socket.close();
  }
}

/** Sets a breakpoint at a line of note.ts. @returns the generated position */
async function breakAt(debug: Debugger): Promise<{ readonly lineNumber: number; readonly columnNumber: number }> {
  const script = await debug.event<Script>('Debugger.scriptParsed', ({ url }) => url.endsWith('.dev.cjs'));
  expect(script.sourceMapURL).toMatch(/\.dev\.cjs\.map$/);
  const file = script.url.replace('file://', '');
  const map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')) as SourceMapPayload);
  const code = readFileSync(file, 'utf8').split('\n');
  for (const [lineNumber, text] of code.entries()) {
    for (const { index: columnNumber } of text.matchAll(/\bnew\b/g)) {
      const entry = map.findEntry(lineNumber, columnNumber);
      if (!('originalSource' in entry) || entry.originalLine !== line - 1) continue;
      if (!entry.originalSource.endsWith('/note.ts')) continue;
      await debug.ask('Debugger.setBreakpointByUrl', { url: script.url, lineNumber, columnNumber });
      return { lineNumber, columnNumber };
    }
  }
  throw new Error('the source map does not lead to the line');
}

let project: string;
let port: number;
let start: Start;
let client: ApiClient;
const note = { namespace: 'notes-samples', name: 'hello-note' };

beforeAll(async () => {
  project = mkdtempSync(join(folder, 'notes-'));
  installKindred(project);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'notes', kindred: { kinds: 'note.ts' } }));
  writeFileSync(join(project, 'note.ts'), source('spec.text'));
  port = await freePort();
  start = new Start({ project }, `--inspect=${port}`);
  await start.says(/export KUBECONFIG=(\S+)/);
  client = await kubeconfigClient(/export KUBECONFIG=(\S+)/.exec(start.stdout)?.[1] ?? '');
});
afterAll(async () => {
  await client.close();
  start.signal('SIGKILL');
  await start.ended;
});

test('a breakpoint in children stops in the source, shows its values, and holds the operator for longer than a Lease', async () => {
  const debug = await Debugger.attach(port);
  const at = await breakAt(debug);
  await client.delete(owned.ConfigMap, note, {});
  const { callFrames } = await debug.event<Paused>('Debugger.paused');
  const [frame] = callFrames;
  expect(frame).toMatchObject({ functionName: 'children', location: at });
  const evaluated = await debug.ask<{ readonly result: { readonly value: unknown } }>('Debugger.evaluateOnCallFrame', {
    ...{ callFrameId: frame?.callFrameId, expression: 'data.note' },
  });
  expect(evaluated.result.value).toBe('hi');
  // A Lease would be lost after 15 s.
  await new Promise((resolve) => setTimeout(resolve, 20_000));
  expect(await client.get(owned.ConfigMap, note)).toBeUndefined();
  await debug.ask('Debugger.resume');
  await waitFor(() => client.get(owned.ConfigMap, note), { describe: 'the child to be there again' });
  debug.close();
});

test('the next version has the inspector at the same port, and stops too', async () => {
  writeFileSync(join(project, 'note.ts'), source('spec.text + "!"'));
  await start.says(/^Loaded anew in .*: operator notes\.$/m);
  const debug = await Debugger.attach(port);
  await breakAt(debug);
  await client.delete(owned.ConfigMap, note, {});
  const { callFrames } = await debug.event<Paused>('Debugger.paused');
  expect(callFrames[0]?.functionName).toBe('children');
  await debug.ask('Debugger.resume');
  await waitFor(async () => JSON.stringify((await client.get(owned.ConfigMap, note)) ?? '').includes('hi!'));
  debug.close();
});

test('a port that is taken is told before anything is started', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const taken = (server.address() as { readonly port: number }).port;
  const { code, stdout, stderr } = await new Start({ project }, `--inspect=${taken}`).ended;
  server.close();
  expect({ code, stdout, stderr }).toEqual({
    ...{ code: 1, stdout: '' },
    stderr: `kindred: port ${taken} on 127.0.0.1 is taken. Nothing was started. Name another one: --inspect=PORT.\n`,
  });
});

test('a second Ctrl-C ends it while the operator stands at a breakpoint, and leaves nothing behind', async () => {
  const debug = await Debugger.attach(port);
  await breakAt(debug);
  await client.delete(owned.ConfigMap, note, {});
  await debug.event<Paused>('Debugger.paused');
  start.signal('SIGINT');
  await start.says('Ctrl-C ends it at once.');
  start.signal('SIGINT');
  expect(await start.ended).toMatchObject({ code: 130 });
  debug.close();
  await waitFor(() => processesOf(start).length === 0);
  expectNothingLeft(start);
});
