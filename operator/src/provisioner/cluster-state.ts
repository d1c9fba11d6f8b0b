import type { ClusterInput } from '../../../constructs/provision';
import type { RunValues } from '../effects/plan-runner';
import type { Endpoint, HostKeyStore, TaskRecord } from '../tasks';

/** Names of the values in a Cluster's state. */
const RECORDS = 'tasks';
const APPLIED = 'applied';
const HOST_KEYS = 'host-keys';
const TEXTS = 'texts';

/** What is kept of a cluster between runs, in the state of its effects. */
export class ClusterState {
  constructor(private readonly values: RunValues) {}

  /** What was carried out so far. */
  get records(): readonly TaskRecord[] {
    return (this.read(RECORDS) as readonly TaskRecord[] | undefined) ?? [];
  }

  putRecords(records: readonly TaskRecord[]): Promise<void> {
    return this.values.put({ [RECORDS]: records.length === 0 ? undefined : JSON.stringify(records) });
  }

  /** What was applied last, as a whole. */
  get applied(): ClusterInput | undefined {
    return this.read(APPLIED) as ClusterInput | undefined;
  }

  putApplied(input: ClusterInput | undefined): Promise<void> {
    return this.values.put({ [APPLIED]: input === undefined ? undefined : JSON.stringify(input) });
  }

  /** What tasks read that stands in no Secret and no file of its own, by name: a cluster.yml as RKE is given it. It may hold secrets. */
  get texts(): Readonly<Record<string, string>> {
    return (this.read(TEXTS) as Readonly<Record<string, string>> | undefined) ?? {};
  }

  async putTexts(texts: Readonly<Record<string, string>>): Promise<void> {
    const text = Object.keys(texts).length === 0 ? undefined : JSON.stringify(texts);
    if (text !== this.values.all()[TEXTS]) await this.values.put({ [TEXTS]: text });
  }

  /** Host keys of machines whose key the spec does not give: the first one seen is held from then on. */
  get hostKeys(): HostKeyStore {
    const idOf = ({ address, port }: Endpoint): string => `[${address}]:${port}`;
    return {
      get: (endpoint) => Promise.resolve(this.heldHostKeys[idOf(endpoint)] ?? this.heldHostKeys[endpoint.address]),
      put: (endpoint, key) => this.holdHostKeys({ [idOf(endpoint)]: key }),
    };
  }

  /** The host keys that are held, by `[address]:port`, or by an address alone for each of its ports. */
  get heldHostKeys(): Readonly<Record<string, string>> {
    return (this.read(HOST_KEYS) as Record<string, string> | undefined) ?? {};
  }

  /** Holds these keys from now on, besides those of other machines. */
  async holdHostKeys(keys: Readonly<Record<string, string>>): Promise<void> {
    const before = Object.entries(this.heldHostKeys);
    // A key for every port takes the place of those that were held for one.
    const others = before.filter(([endpoint]) => keys[/^\[(.*)\]:/.exec(endpoint)?.[1] ?? ''] === undefined);
    const text = JSON.stringify({ ...Object.fromEntries(others), ...keys });
    if (text !== JSON.stringify(Object.fromEntries(before))) await this.values.put({ [HOST_KEYS]: text });
  }

  private read(name: string): unknown {
    const text = this.values.all()[name];
    return text === undefined ? undefined : JSON.parse(text);
  }
}
