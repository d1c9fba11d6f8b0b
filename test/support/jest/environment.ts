import { TestEnvironment } from 'jest-environment-node';

type Context = ConstructorParameters<typeof TestEnvironment>;

/** An event of jest-circus. An `error` with a promise is an unhandled rejection. */
interface TestEvent {
  readonly name: string;
  readonly error?: unknown;
  readonly promise?: Promise<unknown>;
}

/** The test file of each realm, by the realm's own Promise. */
const fileOfRealm = new WeakMap<object, string>();

/**
 * Jest's environment for Node.js, which names the file that left an unhandled rejection behind.
 *
 * Jest runs several files in a process, one after the other, and a rejection fails whichever of them runs at that time.
 */
export default class NamingEnvironment extends TestEnvironment {
  readonly #file: string;

  constructor(...[config, context]: Context) {
    super(config, context);
    this.#file = context.testPath;
    fileOfRealm.set(this.global.Promise, context.testPath);
  }

  handleTestEvent(event: TestEvent): void {
    if (event.name !== 'error' || event.promise === undefined) return;
    const file = fileOfRealm.get(event.promise.constructor);
    if (file === undefined || file === this.#file) return;
    nameOrigin(event.error, file);
  }
}

/** An error may reject several promises. */
const prefix = 'an unhandled rejection of';

function nameOrigin(error: unknown, file: string): void {
  const { message, stack } = error as { message?: unknown; stack?: unknown };
  if (typeof message !== 'string' || typeof stack !== 'string' || message.startsWith(prefix)) return;
  const named = `${prefix} ${file}, which had ended: ${message}`;
  Object.assign(error as Error, { message: named, stack: stack.replace(message, () => named) });
}
