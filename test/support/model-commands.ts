import type { ScriptResult } from '../../provision';
import type { ClusterModel } from './cluster-model';
import { valuesIn } from './cluster-specs';
import { commandProvider, plain, type ProviderPackage, type Values } from './pulumi-engine';

/** How Commands are carried out on a {@link ClusterModel}. */
export interface ModelCommandsOptions {
  /** Told why a Command failed. */
  readonly onFailure?: (reason: string) => void;
  /** The kubeconfig that the cluster gives. @default the model's */
  readonly kubeconfig?: string;
}

/** The package `command`: carries out the Commands of a RemoteCluster `prod` on a model. */
export function modelCommands(model: ClusterModel, options: ModelCommandsOptions = {}): ProviderPackage {
  const ran = (name: string, inputs: Values, line: 'create' | 'update' | 'delete'): Values =>
    run({ model, name, inputs, line }, options);
  return {
    name: 'command',
    configure: async () => ({
      ...(await commandProvider().configure({})),
      create: ({ inputs, name }) => Promise.resolve({ id: name, outputs: ran(name, inputs, 'create') }),
      update: ({ inputs, name }) => Promise.resolve({ outputs: ran(name, inputs, 'update') }),
      delete: ({ inputs, name }) => {
        ran(name, inputs, 'delete');
        return Promise.resolve();
      },
    }),
  };
}

interface Line {
  readonly model: ClusterModel;
  readonly name: string;
  readonly inputs: Values;
  readonly line: 'create' | 'update' | 'delete';
}

function run({ model, name, inputs, line }: Line, { onFailure, kubeconfig }: ModelCommandsOptions): Values {
  const nothing = { ...inputs, stdout: '', stderr: '' };
  if (inputs[line] === undefined) return nothing;
  const [script = '', ...values] = (plain(inputs['stdin']!) as string).split('\n');
  const { host = '' } = plain(inputs['connection'] ?? {}) as { host?: string };
  const answer: ScriptResult = model.dead.has(host)
    ? { ok: false, changed: false, reason: 'Unreachable' }
    : model.run({
        id: name.replace(/^prod\//, '').replace(/\/removal$/, ''),
        action: line === 'delete' ? 'remove' : 'apply',
        on: host,
        script: scriptIn(script),
        values: valuesIn(values.join('\n')),
      });
  if (!answer.ok) {
    onFailure?.(answer.reason ?? '');
    throw new Error(answer.reason);
  }
  const { outputs } = answer;
  const given = outputs?.['kubeconfig'] !== undefined && kubeconfig !== undefined;
  const all = given ? { ...outputs, kubeconfig: Buffer.from(kubeconfig).toString('base64') } : outputs;
  return { ...nothing, stdout: `${JSON.stringify({ ...answer, ...(all && { outputs: all }) })}\n` };
}

const decoded = (text: string): string => Buffer.from(text, 'base64').toString();

/** The script in the first line of a Command's stdin. */
const scriptIn = (line: string): string => decoded(/printf %s ([A-Za-z0-9+/=]+)/.exec(decoded(line))?.[1] ?? '');
