import { runInThisContext } from 'node:vm';
import * as pulumi from '@pulumi/pulumi';
import * as sdkSettings from '@pulumi/pulumi/runtime/settings';
import * as sdkState from '@pulumi/pulumi/runtime/state';
import type { Home } from './aliases';

/** A Pulumi program: makes resources, and returns the stack's outputs. */
export type Program = () => unknown;

/** What a program is started with. */
export interface ProgramContext extends Home {
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
  ignoreEndedEngines();
  const unhandled = new UnhandledRejections();
  try {
    await withLocalStorage(async () => {
      const { address, project, stack, preview, config } = context;
      sdkSettings.resetOptions(project, stack, -1, address, address, preview, 'organization');
      const secrets = [...config].filter(([, value]) => value.secret).map(([key]) => key);
      pulumi.runtime.setAllConfig(Object.fromEntries([...config].map(([key, { value }]) => [key, value])), secrets);
      const clients = [sdkSettings.getMonitor(), sdkSettings.getEngine()] as unknown as { close(): void }[];
      // The clients of a program that is left where it stands stay: what it asks for still must fail as the SDK expects.
      const done = drained(program).finally(() => clients.forEach((client) => client.close()));
      // What waits for a resource that failed so waits for ever: the real process ends then, as nothing keeps it.
      await Promise.race([done, over, unhandled.any]);
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

/**
 * The SDK lets calls to an engine that has ended reject unhandled, on purpose: its own runner then looks away (cmd/run). So must we, for as
 * long as a program that was left may go on. One listener a process, made in its own realm, so that it keeps no test alive; Jest takes all
 * listeners away between files.
 */
function ignoreEndedEngines(): void {
  runInThisContext(`{
    const key = Symbol.for('pulumi-test-engine.ignore-ended-engines');
    process[key] ??= (reason, promise) => {
      if (reason !== null && typeof reason === 'object' && (reason.code === 14 || reason.code === 1)) promise.catch(() => {});
    };
    if (!process.listeners('unhandledRejection').includes(process[key])) process.on('unhandledRejection', process[key]);
  }`);
}

/** Errors in `apply` and in resources' inputs reach nobody's `await`; the SDK relies on the process to notice them. */
class UnhandledRejections {
  private readonly errors = new Set<unknown>();
  private tell: () => void = () => undefined;
  /** Resolves at the first. */
  readonly any = new Promise<void>((resolve) => (this.tell = resolve));
  private readonly listener = (reason: unknown, promise: Promise<unknown>): void => {
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

/** UNAVAILABLE and CANCELLED: the SDK's words for an engine that has ended. */
function isGrpcEnd(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === 14 || code === 1;
}
