import { errorMessage, InvalidObjectError, InvalidPropsError, KindDefinitionError, RenderError } from './errors';

/**
 * A function that the author of a kind has written threw: `children`, `observe`, an effect's `input`, a plan. The message
 * says which one, what it threw, and where in the author's files: `Website team/site: Website.children: TypeError: Cannot
 * read properties of undefined (reading 'x') (website.ts:42:18)`.
 *
 * Its stack is that of what was thrown, with the causes, in the lines of the sources. What was thrown is the `cause`.
 */
export class KindFunctionError extends RenderError {
  override readonly name = 'KindFunctionError';
  /** The message without the object, for that object's own status. */
  readonly summary: string;

  /**
   * @param object - kind and name of the object, for example `HelloApp default/web`
   * @param calledFunction - for example `HelloApp.children`
   */
  constructor(
    object: string,
    readonly calledFunction: string,
    cause: unknown,
  ) {
    const stack = sourceStack(cause);
    const summary = `${calledFunction}: ${lineOf(cause)}${placeIn(stack)}`;
    super(object, summary, { cause });
    this.summary = summary;
    const frames = framesOf(stack);
    const head = `${this.name}: ${this.message}`;
    this.stack = frames === '' ? head : `${head}\n${frames}`;
  }
}

/**
 * Calls a function that the author of a kind has written. All of them are called through this.
 *
 * @param object - kind and name of the object that it is called for
 * @param name - the function, for example `HelloApp.children`
 * @throws KindFunctionError when it throws; RenderError as it is, which says what is wrong already
 */
export function callKindFunction<T>(object: string, name: string, call: () => T): T {
  const outer = running;
  running = name;
  try {
    const result = call();
    running = outer;
    return result;
  } catch (error) {
    running = outer;
    if (error instanceof RenderError) throw error;
    throw new KindFunctionError(object, name, error);
  }
}

/** The function that is being called. */
let running: string | undefined;

/** The function that was being called when V8 was told to stop, which runs no `catch`; undefined: none. */
export function takeRunningFunction(): string | undefined {
  const name = running;
  running = undefined;
  return name;
}

/** What was thrown, and where in the author's files: `TypeError: x is not a function (website.ts:42:18)`. */
export function describeThrown(thrown: unknown): string {
  return `${lineOf(thrown)}${placeIn(sourceStack(thrown))}`;
}

/** The message of an error for the status of the object that it is about, which need not name that object. */
export function statusMessage(error: unknown): string {
  return error instanceof KindFunctionError ? error.summary : errorMessage(error);
}

/** How the stacks of a program lead to its sources. */
export interface ProgramStacks {
  /** The project's folder, as an absolute path: files below it are the author's, and are named relative to it. */
  readonly root: string;
  /** A stack with the lines of the sources. They are absolute paths. */
  readonly toSources: (stack: string) => string;
}

let program: ProgramStacks | undefined;

/**
 * Says how the stacks of this process lead to sources.
 * @default they have the lines of the sources already, as in tests, and a file is named without its folder
 */
export function setProgramStacks(stacks: ProgramStacks): void {
  program = stacks;
}

/** The stack of an error and of its causes, with paths relative to the project, if that is known. Empty for what is not an error. */
function sourceStack(error: unknown): string {
  const texts: string[] = [];
  for (let one = error, depth = 0; depth < MAX_CAUSES; depth += 1) {
    const { stack, cause } = (typeof one === 'object' && one !== null ? one : {}) as Partial<Error>;
    if (typeof stack !== 'string') break;
    texts.push(stack);
    one = cause;
  }
  const stack = texts.join('\ncaused by: ').replaceAll('file:///', '/');
  if (program === undefined) return stack;
  const { root, toSources } = program;
  const folder = root.endsWith('/') ? root : `${root}/`;
  return toSources(stack).replaceAll(`(${folder}`, '(').replaceAll(`at ${folder}`, 'at ');
}

/** A cause may lead back to itself. */
const MAX_CAUSES = 5;

/** What follows the message of the first error: frames, and causes with theirs. */
function framesOf(stack: string): string {
  const first = stack.search(FRAME);
  return first === -1 ? '' : stack.slice(first);
}

const FRAME = /^ {4}at /m;

/** Where in the author's files an error was thrown: ` (website.ts:42:18)`. Empty if it was nowhere in them. */
function placeIn(stack: string): string {
  for (const line of framesOf(stack).split('\n')) {
    // Below it is what called the author's function.
    if (!FRAME.test(line) || line.includes(` ${callKindFunction.name} `)) return '';
    const [, file = '', position = ''] = /(?:\(|at )([^()]+?):(\d+:\d+)\)?$/.exec(line) ?? [];
    // What a map does not know stays in the bundle, a .cjs file.
    const isElsewhere = file === '' || /^\w+:|(?:^|\/)node_modules\/|^[<[]|\.cjs$/.test(file);
    if (isElsewhere || (program !== undefined && file.startsWith('/'))) continue;
    return ` (${program === undefined ? file.replace(/^.*\//, '') : file}:${position})`;
  }
  return '';
}

/** What was thrown, in one line: `TypeError: x is not a function`. Errors that list problems keep all of them. */
function lineOf(thrown: unknown): string {
  const { name } = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Partial<Error>;
  const message = errorMessage(thrown);
  const hasProblems = [InvalidObjectError, InvalidPropsError, KindDefinitionError].some(
    (type) => thrown instanceof type,
  );
  const [line = ''] = message.split('\n', 1);
  const text = hasProblems ? message : line;
  return typeof name === 'string' && name !== '' ? `${name}: ${text}` : text;
}
