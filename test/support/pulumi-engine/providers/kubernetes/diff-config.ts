import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { load } from 'js-yaml';
import type { Diff } from '../../provider';
import { type Plain, type Value, type Values, Unknown, changedKeys, equal, isMap, plain, unwrap } from '../../values';

/**
 * What a changed configuration of a provider means (provider/pkg/provider, `DiffConfig`): the cluster of another context or kubeconfig
 * replaces the provider, and with it every object; so does another `clusterIdentifier`. The same identifier lets nothing replace it. One that
 * comes or goes decides nothing: the clusters are compared then, if both kubeconfigs lead to one.
 *
 * @throws Error for a kubeconfig that is none, the old one too
 */
export function diffConfig(before: Values, after: Values): Diff {
  const changed = changedKeys(before, after);
  if (changed.length === 0) return { changed, replace: [] };
  const identifiers = [before.clusterIdentifier, after.clusterIdentifier];
  const known = identifiers.every((value) => value !== undefined);
  const same = known && equal(...(identifiers as [Value, Value]));
  const replace = known && !same ? ['clusterIdentifier'] : [];
  const target = ['kubeconfig', 'context', 'cluster'];
  const unknown = target.find((key) => after[key] instanceof Unknown || openOf(after, key) instanceof Unknown);
  if (unknown !== undefined) return { changed: [unknown], replace: same ? [] : [...replace, unknown] };
  const [old, now] = [activeCluster(before), activeCluster(after)];
  const moved = old !== undefined && now !== undefined && !isDeepStrictEqual(old, now);
  if (moved) replace.push(...target.filter((key) => changed.includes(key)));
  return { changed, replace: same ? [] : replace };
}

/** A kubeconfig, as far as it is looked at. */
interface Config {
  readonly 'current-context'?: string;
  readonly contexts?: readonly { readonly name: string; readonly context: { readonly cluster: string } }[];
  readonly clusters?: readonly { readonly name: string; readonly cluster: unknown }[];
}

/** The settings of the cluster that is meant; undefined where none can be found, such as without a kubeconfig (`getActiveClusterFromConfig`). */
function activeCluster(inputs: Values): unknown {
  const config = configOf(openOf(inputs, 'kubeconfig'));
  const context = textOf(inputs, 'context') ?? config['current-context'] ?? '';
  const active = config.contexts?.find(({ name }) => name === context);
  const cluster = textOf(inputs, 'cluster') ?? active?.context.cluster;
  return active === undefined ? undefined : config.clusters?.find(({ name }) => name === cluster)?.cluster;
}

/** A path, or the text itself (`parseKubeconfigString`). */
function configOf(value: Value | undefined): Config {
  if (value === undefined || value === null || value === '') return {};
  const given: Plain = plain(value);
  if (typeof given !== 'string') return given as Config;
  const path = given === '~' || given.startsWith('~/') ? join(homedir(), given.slice(1)) : given;
  const isFile = path.length < 4096 && !path.includes('\n') && existsSync(path);
  const config = load(isFile ? readFileSync(path, 'utf8') : given);
  if (config === undefined || config === null) return {};
  if (typeof config === 'object') return config;
  throw new Error(`failed to parse kubeconfig: "${given}" is no file, and no kubeconfig`);
}

/** An empty text is one: it names a context that there is not. */
function textOf(inputs: Values, key: string): string | undefined {
  const value = openOf(inputs, key);
  return typeof value === 'string' ? value : undefined;
}

function openOf(inputs: Values, key: string): Value | undefined {
  const value = inputs[key];
  return value === undefined || isMap(value) ? value : unwrap(value);
}
