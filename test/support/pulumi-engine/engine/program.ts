import { runInThisContext } from 'node:vm';
import * as pulumi from '@pulumi/pulumi';
import { LogSeverity } from '@pulumi/pulumi/proto/engine_pb';
import type { LogRequest } from '@pulumi/pulumi/proto/engine_pb';
import * as sdkSettings from '@pulumi/pulumi/runtime/settings';
import * as sdkState from '@pulumi/pulumi/runtime/state';
import type { StackId } from './registration';

/** A Pulumi program: makes resources, and returns the stack's outputs. */
export type Program = () => unknown;

/** What a program is started with. */
export interface ProgramContext extends StackId {
  /** Of the monitor and the engine. */
  readonly address: string;
  readonly preview: boolean;
  readonly config: ReadonlyMap<string, { readonly value: string; readonly secret: boolean }>;
}

/** The SDK's own way to run several programs in one process; its inline programs of the automation API use it. Not in its types. */
const { withLocalStorage } = sdkState as unknown as {
  readonly withLocalStorage: <T>(run: () => Promise<T>) => Promise<T>;
};

/** The real process: Jest gives tests a copy, whose events never fire. */
const realProcess = runInThisContext('process') as NodeJS.Process;

/**
 * Runs a program, as the SDK's inline language host does (automation/server.js), until it has nothing more to ask for.
 *
 * @param over - resolves when the engine goes no further; the program is then left where it stands, as the real engine kills it
 * @throws what the program threw; several errors as an AggregateError
 */
export async function runProgram(program: Program, context: ProgramContext, over: Promise<void>): Promise<void> {
  const unhandled = new UnhandledRejections();
  try {
    await withLocalStorage(async () => {
      const { address, project, stack, preview, config } = context;
      sdkSettings.resetOptions(project, stack, -1, address, address, preview, 'organization');
      const secrets = [...config].filter(([, value]) => value.secret).map(([key]) => key);
      pulumi.runtime.setAllConfig(Object.fromEntries([...config].map(([key, { value }]) => [key, value])), secrets);
      const clients = [sdkSettings.getMonitor(), sdkSettings.getEngine()].map((client) => new Client(client));
      try {
        // A promise that depends on a failed resource never settles. The real process would end, because nothing keeps it alive.
        await Promise.race([drained(program), over, unhandled.any]);
      } finally {
        await Promise.all(clients.map((client) => client.end()));
      }
    });
  } finally {
    await unhandled.stop();
  }
  unhandled.throwAny();
}

async function drained(program: Program): Promise<void> {
  try {
    // What a program throws at once is a rejection, too.
    await pulumi.runtime.runInPulumiStack(
      () =>
        new Promise((resolve) => {
          resolve(program());
        }),
    );
  } finally {
    await sdkSettings.disconnect();
  }
}

type Callback = (error: Error | null, ...results: unknown[]) => void;
type Call = (...args: unknown[]) => unknown;

/**
 * A client of the SDK whose program can be ended. The real engine kills the program; here it is left where it stands, and what it
 * requests later must not fail the test file that runs next.
 */
class Client {
  readonly #pending = new Set<Callback>();
  readonly #close: () => void;
  #state: 'open' | 'ending' | 'ended' = 'open';

  constructor(client: unknown) {
    const methods = client as Record<string, Call>;
    const names = Object.keys(Object.getPrototypeOf(client) as object);
    for (const name of names) methods[name] = this.#guarded(methods[name]!.bind(client), name === 'log');
    this.#close = (client as { close(): void }).close.bind(client);
  }

  /** Fails all pending requests, and those that follow from their failing; the program gets no response to any later one. */
  async end(): Promise<void> {
    this.#state = 'ending';
    this.#close();
    while (this.#pending.size > 0) {
      for (const callback of this.#pending) this.#respond(callback, unavailable());
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#state = 'ended';
  }

  /** @param isLog - the SDK sends the messages of all programs in one line, where none may wait for ever */
  #guarded(call: Call, isLog: boolean): Call {
    return (...args) => {
      const callback = args.pop() as Callback;
      // The engine drops debug messages. The SDK sends several for each resource, as many as all other requests together.
      if (isLog && (isDebug(args[0]) || this.#state === 'ended')) {
        queueMicrotask(() => callback(null));
        return;
      }
      if (this.#state === 'ended') return;
      this.#pending.add(callback);
      if (this.#state !== 'open') return;
      call(...args, (...results: Parameters<Callback>) => this.#respond(callback, ...results));
    };
  }

  #respond(callback: Callback, ...results: Parameters<Callback>): void {
    if (this.#pending.delete(callback)) callback(...results);
  }
}

function isDebug(request: unknown): boolean {
  return (request as LogRequest).getSeverity() === LogSeverity.DEBUG;
}

/** The error of a request to an engine that has ended, as gRPC makes it. */
function unavailable(): Error {
  return Object.assign(new Error('14 UNAVAILABLE: the program has ended'), { code: 14 });
}

/** Errors in `apply` and in resources' inputs reach nobody's `await`; the SDK relies on the process to notice them. */
class UnhandledRejections {
  private readonly errors = new Set<unknown>();
  private tell: () => void = () => undefined;
  /** Resolves at the first. */
  readonly any = new Promise<void>((resolve) => (this.tell = resolve));
  private readonly listener = (reason: unknown, promise: Promise<unknown>): void => {
    // Another test file of this process left it behind; it has a Promise of its own. Jest says so.
    if (!(promise instanceof Promise)) return;
    this.errors.add(reason);
    if (!isGrpcEnd(reason)) this.tell();
    // Handled now: the test itself has not failed.
    promise.catch(() => undefined);
  };

  constructor() {
    realProcess.on('unhandledRejection', this.listener);
  }

  /** Node tells of a rejection when the turn of the event loop ends that it happened in. */
  async stop(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    realProcess.off('unhandledRejection', this.listener);
  }

  throwAny(): void {
    const errors = [...this.errors].filter((error) => !isGrpcEnd(error));
    if (errors.length === 1) throw errors[0];
    if (errors.length > 1) throw new AggregateError(errors, errors.map(String).join('\n'));
  }
}

/**
 * UNAVAILABLE and CANCELLED: the SDK's words for an engine that has ended. UNIMPLEMENTED: the callback server of a program that ended
 * before it had reached itself goes on asking its port, once a second, and another server has that port by now.
 */
function isGrpcEnd(error: unknown): boolean {
  const { code, details } = (error ?? {}) as { readonly code?: unknown; readonly details?: unknown };
  return code === 14 || code === 1 || (code === 12 && String(details).endsWith('/pulumirpc.Callbacks/Invoke'));
}
