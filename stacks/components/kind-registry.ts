import * as pulumi from '@pulumi/pulumi';

/** What the components of one run of a program have claimed. Several runs may share a process, as in tests. */
interface Claims {
  readonly objects: Map<string, string>;
  readonly shared: Map<string, pulumi.Resource>;
}

const runs = new WeakMap<object, WeakMap<object, Claims>>();
const outsideOfRuns = {};
const defaultProvider = {};

function claimsOf(provider: pulumi.ProviderResource | undefined): Claims {
  const run = pulumi.runtime.getMonitor() ?? outsideOfRuns;
  const providers = runs.get(run) ?? new WeakMap<object, Claims>();
  runs.set(run, providers);
  const claims = providers.get(provider ?? defaultProvider) ?? { objects: new Map(), shared: new Map() };
  providers.set(provider ?? defaultProvider, claims);
  return claims;
}

/**
 * Claims an object for a component.
 *
 * @throws TypeError when another component of the same program has it: the two would overwrite each other
 */
export function claimObject(
  provider: pulumi.ProviderResource | undefined,
  object: { readonly crdName: string; readonly namespace: string; readonly name: string },
  component: string,
): void {
  const { objects } = claimsOf(provider);
  const id = JSON.stringify(object);
  const other = objects.get(id);
  if (other !== undefined) {
    const { crdName, namespace, name } = object;
    const full = namespace === '' ? name : `${namespace}/${name}`;
    throw new TypeError(
      `KindComponent ${component}: ${crdName} ${full} belongs to the KindComponent ${other} of this program already; an object has one, ` +
        "either as: 'resource' or as: 'children'. Give it another name, or remove one of the two",
    );
  }
  objects.set(id, component);
}

/** How a shared resource is registered. */
export interface SharedName {
  readonly name: string;
  readonly opts: pulumi.ComponentResourceOptions;
}

/**
 * What several components share: made by the first that asks, once on each cluster.
 *
 * @param id tells it from others of its cluster
 * @param make is told the name, of which a program has only one, and the options that go with it
 */
export function sharedResource<R extends pulumi.Resource>(
  provider: pulumi.ProviderResource | undefined,
  id: string,
  make: (named: SharedName) => R,
): R {
  const { shared } = claimsOf(provider);
  const known = shared.get(id);
  // Whoever asks under this id makes the same.
  if (known !== undefined) return known as R;
  const made = make(sharedName(provider, id));
  shared.set(id, made);
  return made;
}

function sharedName(provider: pulumi.ProviderResource | undefined, id: string): SharedName {
  if (provider === undefined) return { name: id, opts: {} };
  // What was registered before the provider stood in the name is taken over, unless it is that of the default provider.
  const taken = claimsOf(undefined).shared.has(id);
  return { name: `${pulumi.resourceName(provider)}/${id}`, opts: { provider, aliases: taken ? [] : [{ name: id }] } };
}
