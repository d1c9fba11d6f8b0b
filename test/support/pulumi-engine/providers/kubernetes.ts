import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { clusterAccessFromText, createApiClient } from '../../../../operator';
import type { CheckRequest, Diff, DiffRequest, PreviewRequest, Provider, ProviderPackage } from '../engine/provider';
import {
  Secret,
  hasUnknown,
  isMap,
  mirrorSecrets,
  toSecret,
  textOf,
  unwrap,
  without,
  type Value,
  type Values,
} from '../engine/values';
import { changedPaths, diffConfig, forceNewPaths, pathsOverlap } from './kubernetes-diff';
import { KubernetesObjects, type ObjectOptions } from './kubernetes-objects';

/** The objects of one cluster, as a provider writes and reads them. */
export type ObjectStore = Pick<KubernetesObjects, 'create' | 'update' | 'delete' | 'read'>;

/** How to make the package. */
export interface KubernetesOptions {
  /** Path of the kubeconfig of providers that name none. @default `KUBECONFIG`, then `~/.kube/config` */
  readonly kubeconfig?: string;
  /** How long to wait for an object where nobody says, in milliseconds; the real provider waits ten minutes. @default 60_000 */
  readonly awaitTimeoutMs?: number;
  /** Objects of the cluster behind a server, in the place of those that the server has. @default the server is asked */
  readonly connect?: (server: string, options: ObjectOptions) => ObjectStore;
}

/** The package `kubernetes`: objects on a real API server. */
export function kubernetesProvider(options: KubernetesOptions = {}): ProviderPackage {
  return {
    name: 'kubernetes',
    diffConfig,
    configure: (config) => configured(config, options),
  };
}

function configured(config: Values, options: KubernetesOptions): Provider {
  const text = kubeconfigText(config, options);
  const access = clusterAccessFromText(withContext(text, config), 'the kubeconfig of the provider');
  const namespace = setting(config, 'namespace');
  const flag = (key: string): boolean => ['true', true].includes(setting(config, key) as string | boolean);
  const settings: ObjectOptions = {
    upsert: flag('upsertExistingObjects'),
    force: flag('enablePatchForce'),
    defaultNamespace: typeof namespace === 'string' ? namespace : (access.namespace ?? 'default'),
    awaitTimeoutMs: options.awaitTimeoutMs ?? 60_000,
  };
  const client = options.connect === undefined ? createApiClient(access) : undefined;
  const objects =
    client === undefined ? options.connect!(access.server, settings) : new KubernetesObjects(client, settings);
  const mutability = { configMaps: flag('enableConfigMapMutable'), secrets: flag('enableSecretMutable') };
  return {
    check: (request) => Promise.resolve({ inputs: check(request) }),
    diff: (request) => Promise.resolve(diff(request, mutability)),
    create: (request) => objects.create(request).then(({ id, outputs }) => ({ id, outputs: marked(outputs) })),
    update: (request) => objects.update(request).then(({ outputs }) => ({ outputs: marked(outputs) })),
    delete: (request) => objects.delete(request),
    read: async ({ id, inputs, type }) => {
      const found = (await objects.read({ ...typeOf(type), ...inputs }, id)) as unknown as Values | undefined;
      return found === undefined ? undefined : { inputs: found, outputs: marked(found) };
    },
    preview: (request) => Promise.resolve(preview(request)),
    close: () => client?.close() ?? Promise.resolve(),
  };
}

/** What a type of Pulumi's says of the object, whose inputs say nothing where it is only read (`gvkFromURN`). */
function typeOf(type: string): Values {
  const [, apiVersion = '', kind = ''] = type.split(':');
  return { apiVersion: apiVersion.replace(/^core\//, ''), kind };
}

/** Data of Secrets is secret, whatever the program says. A name is made where there is none. */
function check({ inputs, oldInputs, name }: CheckRequest): Values {
  const metadata = inputs.metadata === undefined ? {} : unwrap(inputs.metadata);
  if (!isMap(metadata) || metadata.name !== undefined) return marked(inputs);
  const old = oldInputs === undefined ? undefined : unwrap(oldInputs.metadata ?? {});
  const oldName = isMap(old) ? old.name : undefined;
  const suffix = Math.random().toString(16).slice(2, 10).padEnd(8, '0');
  const annotations = { ...(metadata.annotations as Values | undefined), 'pulumi.com/autonamed': 'true' };
  return marked({ ...inputs, metadata: { ...metadata, name: oldName ?? `${name}-${suffix}`, annotations } });
}

function marked(values: Values): Values {
  if (values.kind !== 'Secret') return values;
  const keys = ['data', 'stringData'].filter((key) => values[key] !== undefined);
  return { ...values, ...Object.fromEntries(keys.map((key) => [key, toSecret(values[key]!)])) };
}

function diff(request: DiffRequest, mutability: { configMaps: boolean; secrets: boolean }): Diff {
  const { inputs, oldInputs, oldOutputs, ignoreChanges } = request;
  const changed = changedPaths(normalized(oldInputs), oldOutputs, normalized(inputs), ignoreChanges);
  const [apiVersion, kind] = [textOf(inputs.apiVersion, 'apiVersion'), textOf(inputs.kind, 'kind')];
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  const fixed = forceNewPaths(group, kind, mutability, at(inputs, 'immutable') === true);
  const replace = changed.filter((path) => pathsOverlap(path, fixed));
  const sameName = at(inputs, 'metadata', 'name') === at(oldOutputs, 'metadata', 'name');
  const sameNamespace = !replace.includes('metadata.namespace');
  const autonamed = at(inputs, 'metadata', 'annotations', 'pulumi.com/autonamed') === 'true';
  return { changed, replace, deleteBeforeReplace: replace.length > 0 && sameName && sameNamespace && !autonamed };
}

/** What a program writes as `stringData` the server keeps, and answers, as `data` only. */
function normalized(inputs: Values): Values {
  const { stringData, ...rest } = inputs;
  const texts = stringData === undefined ? undefined : unwrap(stringData);
  if (inputs.kind !== 'Secret' || !isMap(texts)) return inputs;
  const encode = (value: Value): Value => {
    const open = unwrap(value);
    return typeof open === 'string' ? Buffer.from(open).toString('base64') : open;
  };
  const encoded = Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, encode(value)]));
  return { ...rest, data: { ...(unwrap(rest.data ?? {}) as Values), ...encoded } };
}

function at(values: Values, ...keys: readonly string[]): Value | undefined {
  return keys.reduce<Value | undefined>((value, key) => {
    const open = value === undefined ? undefined : unwrap(value);
    return isMap(open) ? open[key] : undefined;
  }, values);
}

/** What the server would keep: the live object with the new inputs over it. Its status is not known. */
function preview({ inputs, old }: PreviewRequest): Values {
  if (old === undefined || hasUnknown(inputs)) return marked(inputs);
  return mirrorSecrets(overlay(without(old.outputs, 'status'), inputs), old.outputs) as Values;
}

function overlay(below: Value | undefined, above: Value): Value {
  if (above instanceof Secret) return new Secret(overlay(below, above.value));
  const open = below === undefined ? undefined : unwrap(below);
  if (!isMap(above) || !isMap(open)) return above;
  return {
    ...open,
    ...Object.fromEntries(Object.entries(above).map(([key, item]) => [key, overlay(open[key], item)])),
  };
}

function setting(config: Values, key: string): Value | undefined {
  return config[key] === undefined ? undefined : unwrap(config[key]);
}

function kubeconfigText(config: Values, options: KubernetesOptions): string {
  const given = setting(config, 'kubeconfig');
  const fallback = options.kubeconfig ?? process.env.KUBECONFIG ?? join(homedir(), '.kube', 'config');
  const place = typeof given === 'string' && given !== '' ? given : fallback;
  return place.includes('\n') || place.startsWith('{') ? place : readFileSync(place, 'utf8');
}

function withContext(text: string, config: Values): string {
  const context = setting(config, 'context');
  // An empty one overrides nothing (`Configure`).
  if (typeof context !== 'string' || context === '') return text;
  return JSON.stringify({ ...(load(text) as object), 'current-context': context });
}
