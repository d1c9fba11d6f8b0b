import * as pulumi from '@pulumi/pulumi';

/** How the SDK marks a secret on the wire, and what it writes for what is not known (sdk/go/common/resource/properties.go). */
const SIGNATURE = '4dabf18193072939515e22adb298388d';
const SECRET = '1b47061264138c4ac30d75fd1eb44270';
const UNKNOWN = '04da6b54-80e4-46f7-96ec-b56ff0331ba9';

/** Stands in recorded inputs for a value that a preview does not know. */
export const unknown = '(unknown)';

/** A secret in recorded inputs. */
export interface RecordedSecret {
  readonly secret: unknown;
}

/** A resource as it was registered. */
export interface Registered {
  readonly type: string;
  readonly name: string;
  readonly urn: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly dependencies: readonly string[];
  readonly protect: boolean;
  readonly ignoreChanges: readonly string[];
  readonly secretOutputs: readonly string[];
  readonly timeouts: { readonly create: string; readonly update: string; readonly delete: string };
}

interface Request {
  getType(): string;
  getName(): string;
  getParent(): string;
  getObject(): { toJavaScript(): Record<string, unknown> };
  getDependenciesList(): string[];
  getProtect(): boolean;
  getIgnorechangesList(): string[];
  getAdditionalsecretoutputsList(): string[];
  getCustomtimeouts(): { getCreate(): string; getUpdate(): string; getDelete(): string } | undefined;
}

interface Monitor {
  newUrn(parent: string, type: string, name: string): string;
  registerResource(request: Request, callback: unknown): Promise<void>;
}

function recorded(value: unknown): unknown {
  if (value === UNKNOWN) return unknown;
  if (Array.isArray(value)) return value.map(recorded);
  if (typeof value !== 'object' || value === null) return value;
  const { [SIGNATURE]: mark, ...rest } = value as Record<string, unknown>;
  if (mark === SECRET) return { secret: recorded(rest['value']) };
  return Object.fromEntries(Object.entries(rest).map(([key, item]) => [key, recorded(item)]));
}

/** What a script would answer with, by the name of its Command. */
export type Answers = (name: string) => Readonly<Record<string, string>>;

/**
 * Runs a program under Pulumi's mocks, with every request as it goes to the engine: with secrets, unknowns, dependencies and options.
 *
 * @throws what the program throws
 */
export async function record(
  program: () => unknown,
  { preview = false, answers = () => ({}) }: { readonly preview?: boolean; readonly answers?: Answers } = {},
): Promise<readonly Registered[]> {
  const found: Registered[] = [];
  await pulumi.runtime.setMocks(
    {
      call: ({ inputs }) => inputs as Record<string, unknown>,
      newResource: ({ name, inputs, type }) => {
        const outputs = Object.fromEntries(
          Object.entries(answers(name)).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
        );
        const stdout = JSON.stringify({ ok: true, changed: true, outputs });
        const state = inputs as Record<string, unknown>;
        return { id: `${name}-id`, state: type.startsWith('command:') && !preview ? { ...state, stdout } : state };
      },
    },
    'shop',
    'prod',
    preview,
  );
  const monitor = pulumi.runtime.getMonitor() as unknown as Monitor;
  const register = monitor.registerResource.bind(monitor);
  monitor.registerResource = (request, callback) => {
    const timeouts = request.getCustomtimeouts();
    found.push({
      type: request.getType(),
      name: request.getName(),
      urn: monitor.newUrn(request.getParent(), request.getType(), request.getName()),
      inputs: recorded(request.getObject().toJavaScript()) as Record<string, unknown>,
      dependencies: request.getDependenciesList(),
      protect: request.getProtect(),
      ignoreChanges: request.getIgnorechangesList(),
      secretOutputs: request.getAdditionalsecretoutputsList(),
      timeouts: {
        create: timeouts?.getCreate() ?? '',
        update: timeouts?.getUpdate() ?? '',
        delete: timeouts?.getDelete() ?? '',
      },
    });
    return register(request, callback);
  };
  // The runtime ends the process for what a program throws.
  const thrown: unknown[] = [];
  await pulumi.runtime.runInPulumiStack(() => {
    try {
      program();
    } catch (error) {
      thrown.push(error);
    }
    return Promise.resolve();
  });
  // Registrations that wait for others are under way still.
  await pulumi.runtime.disconnect();
  if (thrown.length > 0) throw thrown[0];
  return found.filter(({ type }) => type !== 'pulumi:pulumi:Stack');
}

/** The one of that name. */
export function named(found: readonly Registered[], name: string): Registered {
  const one = found.find((resource) => resource.name === name);
  if (one === undefined) throw new Error(`no ${name} among ${found.map((resource) => resource.name).join(', ')}`);
  return one;
}

/** The text inside a secret. */
export function opened(value: unknown): string {
  const { secret } = value as RecordedSecret;
  if (typeof secret !== 'string') throw new Error(`no secret text: ${JSON.stringify(value)}`);
  return secret;
}

/** All texts that stand in inputs in the open. */
export function plainTexts(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || 'secret' in value) return [];
  return Object.entries(value).flatMap(([key, item]) => [key, ...plainTexts(item)]);
}
