import { randomBytes } from 'node:crypto';
import type {
  CheckRequest,
  DeleteRequest,
  Diff,
  DiffRequest,
  Provider,
  ProviderPackage,
  ProviderRequest,
} from '../../provider';
import { type Value, type Values, changedKeys, isMap, plainValues, secretly, textOf, unwrap } from '../../values';
import { runLocally } from './local';
import { runRemotely } from './remote';
import type { CommandInputs, CommandRun, Ran } from './run';

const runners: Readonly<Record<string, (run: CommandRun) => Promise<Ran>>> = {
  'command:local:Command': runLocally,
  'command:remote:Command': runRemotely,
};

/**
 * The package `command`, as pulumi-command 1.2 is (provider/pkg/provider): `local.Command` in a shell of this machine, `remote.Command`
 * over SSH.
 */
export function commandProvider(): ProviderPackage {
  return { name: 'command', configure: () => provider };
}

const provider: Provider = {
  check: (request) => Promise.resolve(check(request)),
  diff: (request) => Promise.resolve(diff(request)),
  create: async (request) => {
    const inputs = inputsOf(request.inputs);
    const ran = inputs.create === undefined ? nothing : await run(request, inputs.create, inputs, nothing);
    return { id: `${request.name}${randomBytes(4).toString('hex')}`, outputs: { ...request.inputs, ...ran } };
  },
  update: async (request) => {
    const inputs = inputsOf(request.inputs);
    const command = inputs.update ?? inputs.create;
    const before = outputsOf(request.oldOutputs);
    const ran = command === undefined ? before : await run(request, command, inputs, before);
    return { outputs: { ...request.inputs, ...ran } };
  },
  delete: async (request: DeleteRequest) => {
    const inputs = inputsOf(request.outputs);
    if (inputs.delete !== undefined) await run(request, inputs.delete, inputs, outputsOf(request.outputs));
  },
};

const nothing: Ran = { stdout: '', stderr: '' };

/** The whole connection is secret, and has the provider's defaults. */
function check({ type, inputs }: CheckRequest): { inputs: Values; failures?: readonly string[] } {
  if (!(type in runners)) return { inputs, failures: [`the test engine has no ${type}`] };
  if (type !== 'command:remote:Command') return { inputs };
  const connection = inputs.connection === undefined ? undefined : unwrap(inputs.connection);
  if (connection === undefined) return { inputs, failures: ['connection is required'] };
  if (!isMap(connection)) return { inputs };
  return { inputs: { ...inputs, connection: secretly(withDefaults(connection)) } };
}

function withDefaults(connection: Values): Value {
  const defaults = { user: 'root', port: 22, dialErrorLimit: 10, perDialTimeout: 15 };
  const proxy = connection.proxy === undefined ? undefined : unwrap(connection.proxy);
  return { ...defaults, ...connection, ...(isMap(proxy) ? { proxy: withDefaults(proxy) } : {}) };
}

/** Another trigger is another resource; anything else that changes runs `update`, or `create` where there is none. */
function diff({ inputs, oldInputs }: DiffRequest): Diff {
  const changed = changedKeys(oldInputs, inputs);
  return { changed, replace: changed.filter((key) => key === 'triggers') };
}

async function run(request: ProviderRequest, command: string, inputs: CommandInputs, before: Ran): Promise<Ran> {
  const previous = inputs.addPreviousOutputInEnv === false ? nothing : before;
  const more = Object.entries({ PULUMI_COMMAND_STDOUT: previous.stdout, PULUMI_COMMAND_STDERR: previous.stderr });
  const env = { ...inputs.environment, ...Object.fromEntries(more.filter(([, text]) => text !== '')) };
  return runners[request.type]!({ request, command, inputs, env });
}

function inputsOf(values: Values): CommandInputs {
  return plainValues(values);
}

function outputsOf(values: Values): Ran {
  return { stdout: textOf(values.stdout, 'stdout'), stderr: textOf(values.stderr, 'stderr') };
}
