import * as pulumi from '@pulumi/pulumi';

/** What Pulumi's engine was asked to register, as it stands on the wire. */
export interface Registration {
  readonly type: string;
  readonly name: string;
  readonly urn: string;
  readonly parent: string;
  readonly custom: boolean;
  /** Inputs: secrets are wrapped, unknown values are {@link UNKNOWN}. */
  readonly object: Readonly<Record<string, unknown>>;
  readonly dependencies: readonly string[];
  readonly provider: string;
  readonly protect: boolean;
  readonly retainOnDelete: boolean;
  readonly ignoreChanges: readonly string[];
  readonly replaceOnChanges: readonly string[];
  readonly deleteBeforeReplace: boolean | undefined;
  readonly additionalSecretOutputs: readonly string[];
  readonly aliasUrns: readonly string[];
  readonly aliasTypes: readonly string[];
  readonly aliasNames: readonly string[];
  readonly importId: string;
  readonly version: string;
  readonly timeouts: readonly string[];
}

/** How an unknown value stands on the wire. Source: @pulumi/pulumi, `runtime.unknownValue`. */
export const UNKNOWN = pulumi.runtime.unknownValue;

/** A secret as it stands on the wire. Source: @pulumi/pulumi, `runtime.specialSigKey` and `specialSecretSig`. */
export function wrapped(value: unknown): unknown {
  return { [pulumi.runtime.specialSigKey]: pulumi.runtime.specialSecretSig, value };
}

interface Request {
  getType(): string;
  getName(): string;
  getParent(): string;
  getCustom(): boolean;
  getObject(): { toJavaScript(): Record<string, unknown> };
  getDependenciesList(): string[];
  getProvider(): string;
  getProtect(): boolean;
  getRetainondelete(): boolean;
  getIgnorechangesList(): string[];
  getReplaceonchangesList(): string[];
  getDeletebeforereplace(): boolean;
  getDeletebeforereplacedefined(): boolean;
  getAdditionalsecretoutputsList(): string[];
  getAliasesList(): { getUrn(): string; getSpec(): { getType(): string; getName(): string } | undefined }[];
  getImportid(): string;
  getVersion(): string;
  getCustomtimeouts(): { getCreate(): string; getUpdate(): string; getDelete(): string } | undefined;
}

interface Response {
  getUrn(): string;
}

type Callback = (error: Error | null, response?: Response) => void;

interface Monitor {
  registerResource(request: Request, callback: Callback): void;
}

/** How a run goes. */
export interface RunOptions {
  /** @default false */
  readonly preview?: boolean;
  /** Output properties of a resource besides its inputs. @default none */
  readonly state?: (type: string, name: string) => Record<string, unknown>;
}

/** Runs a program against Pulumi's mock engine. @returns what was registered, in that order */
export async function run(program: () => unknown, options: RunOptions = {}): Promise<readonly Registration[]> {
  await pulumi.runtime.setMocks(
    {
      newResource: ({ name, type, inputs }) => ({
        id: `${name}-id`,
        state: { ...(inputs as object), ...options.state?.(type, name) },
      }),
      call: () => ({}),
    },
    'project',
    'stack',
    options.preview ?? false,
  );
  const registrations: Registration[] = [];
  const monitor = pulumi.runtime.getMonitor() as unknown as Monitor;
  const register = monitor.registerResource.bind(monitor);
  monitor.registerResource = (request, callback) => {
    register(request, (error, response) => {
      if (response !== undefined) registrations.push(registrationOf(request, response.getUrn()));
      callback(error, response);
    });
  };
  await program();
  await pulumi.runtime.disconnect();
  return registrations;
}

function registrationOf(request: Request, urn: string): Registration {
  const timeouts = request.getCustomtimeouts();
  const aliases = request.getAliasesList();
  return {
    type: request.getType(),
    name: request.getName(),
    urn,
    parent: request.getParent(),
    custom: request.getCustom(),
    object: request.getObject().toJavaScript(),
    dependencies: request.getDependenciesList(),
    provider: request.getProvider(),
    protect: request.getProtect(),
    retainOnDelete: request.getRetainondelete(),
    ignoreChanges: request.getIgnorechangesList(),
    replaceOnChanges: request.getReplaceonchangesList(),
    deleteBeforeReplace: request.getDeletebeforereplacedefined() ? request.getDeletebeforereplace() : undefined,
    additionalSecretOutputs: request.getAdditionalsecretoutputsList(),
    aliasUrns: aliases.map((alias) => alias.getUrn()).filter((alias) => alias !== ''),
    aliasTypes: aliases.flatMap((alias) => alias.getSpec()?.getType() ?? []).filter((type) => type !== ''),
    aliasNames: aliases.flatMap((alias) => alias.getSpec()?.getName() ?? []).filter((alias) => alias !== ''),
    importId: request.getImportid(),
    version: request.getVersion(),
    timeouts: timeouts === undefined ? [] : [timeouts.getCreate(), timeouts.getUpdate(), timeouts.getDelete()],
  };
}

/** The registration of that name. */
export function named(registrations: readonly Registration[], name: string): Registration {
  const found = registrations.filter((registration) => registration.name === name);
  if (found.length === 1 && found[0] !== undefined) return found[0];
  throw new Error(
    `${found.length} registrations are named ${name}; there are: ${registrations.map((r) => r.name).join(', ')}`,
  );
}

/** Names of the resources that a registration depends on. */
export function dependencyNames(registrations: readonly Registration[], name: string): readonly string[] {
  const { dependencies } = named(registrations, name);
  return registrations.filter(({ urn }) => dependencies.includes(urn)).map((other) => other.name);
}
