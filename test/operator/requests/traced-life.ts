import { createHash } from 'node:crypto';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import { RunningController, type RunningControllerOptions } from '../controller/running-controller';
import { ref } from '../reconcile/harness';
import type { MemoryApiServer } from '../../../testing/api-server/memory-api-server';
import type { MemoryRequest } from '../../../testing/api-server/requests';

/** A value of a Secret that is longer is shown by its hash, in characters. */
const SHOWN = 200;

/**
 * What an operator asks of the API server while things happen to objects of its kind, as text: verb, type, name, options with the
 * preconditions, and body of each request, and the events that it records.
 *
 * One object is reconciled at a time, so that the order is always the same. The runs of effects go on beside the reconciles, though: of a kind that has
 * some, only the order of the requests for one object is guaranteed, and how often the status follows a run is not.
 */
export class TracedLife {
  running: RunningController;
  #text = '';

  constructor(
    readonly kind: AnyKind,
    private readonly options: Omit<RunningControllerOptions, 'server' | 'concurrency'> = {},
  ) {
    this.running = new RunningController(kind, { ...options, concurrency: 1 });
    this.running.start();
  }

  get server(): MemoryApiServer {
    return this.running.server;
  }

  get text(): string {
    return this.#text;
  }

  /** Something happens, and what the operator does then is added to the trace. */
  async step(name: string, act: () => unknown): Promise<void> {
    this.running.seconds += 1;
    await act();
    await this.running.settle();
    const requests = this.server.takeRequests().filter(({ options }) => options?.['fieldManager'] !== 'kubectl');
    const events = this.running.events.splice(0).map((event) => `EVENT ${JSON.stringify(event)}\n`);
    const guaranteed = this.kind.effects.length === 0 ? requests : byObject(requests);
    this.#text += `\n# ${name}\n${guaranteed.map(shown).join('')}${events.join('')}`;
  }

  /** The operator stops, `meanwhile` happens, and another process begins. */
  async restart(name: string, meanwhile: () => unknown = () => undefined): Promise<void> {
    await this.running.stop();
    const { server, seconds } = this.running;
    await meanwhile();
    this.running = new RunningController(this.kind, { ...this.options, concurrency: 1, server });
    this.running.seconds = seconds;
    await this.step(name, () => this.running.start());
  }

  /** A user creates an object. */
  create(name: string, spec: object | undefined): Promise<unknown> {
    return this.running.add(name, spec, this.kind.type.scope === 'Cluster' ? { namespace: undefined } : {});
  }

  /** A user changes the spec; undefined takes a field out. */
  change(name: string, spec: object): void {
    this.edit(this.kind.type, name, ({ spec: before, ...object }) => ({ ...object, spec: { ...before, ...spec } }));
  }

  /** Somebody changes an object by PUT. */
  edit(type: ResourceType, name: string, change: (object: Editable) => object): void {
    const at = type.scope === 'Cluster' ? { name } : ref(name);
    this.server.edit(type, at, (object) => change(object as Editable) as Editable);
  }

  annotate(name: string, annotations: Record<string, string>): void {
    this.edit(this.kind.type, name, (object) => ({ ...object, metadata: { ...object.metadata, annotations } }));
  }

  /** Somebody deletes an object. The garbage collector takes what it owns. */
  delete(type: ResourceType, name: string): void {
    this.server.remove(type, type.scope === 'Cluster' ? { name } : ref(name));
    this.server.collectGarbage();
  }
}

type Editable = ReturnType<MemoryApiServer['edit']> & { readonly spec: Readonly<Record<string, unknown>> };

/** The requests by the object that they are for, and of those for a status the last one. */
function byObject(requests: readonly MemoryRequest[]): readonly MemoryRequest[] {
  const isStatus = ({ options }: MemoryRequest): boolean => options?.['subresource'] === 'status';
  const last = requests.filter((request, i) => !isStatus(request) || !requests.slice(i + 1).some(isStatus));
  const target = ({ type, ref: { name } }: MemoryRequest): string => `${type.plural} ${name}`;
  return last.toSorted((a, b) => target(a).localeCompare(target(b)));
}

function shown({ verb, type, ref: { namespace, name }, options = {}, body }: MemoryRequest): string {
  const at = namespace === undefined ? name : `${namespace}/${name}`;
  const line = `${verb} ${type.apiVersion} ${type.plural} ${at} ${JSON.stringify(options)}\n`;
  if (body === undefined) return line;
  return `${line}  ${JSON.stringify(type.kind === 'Secret' ? withoutLongValues(body as SecretBody) : body)}\n`;
}

interface SecretBody {
  readonly data?: Readonly<Record<string, string>>;
}

/** The values of a Secret as text. Scripts of a plan are shown by a hash. */
function withoutLongValues(body: SecretBody): SecretBody {
  const { data = {} } = body;
  const values = Object.entries(data).map(([name, value]) => {
    const text = Buffer.from(value, 'base64').toString();
    if (text.length <= SHOWN) return [name, text] as const;
    return [
      name,
      `${String(text.length)} characters, SHA-256 ${createHash('sha256').update(text).digest('hex')}`,
    ] as const;
  });
  return { ...body, data: Object.fromEntries(values) };
}
