import { createHash } from 'node:crypto';
import type * as command from '@pulumi/command';
import * as pulumi from '@pulumi/pulumi';
import type { ObjectKeyRef } from '../../constructs/kind/reads';
import {
  base64,
  sshCommand,
  externalSources,
  decodeOutput,
  parseScriptResult,
  renderSource,
  encodeStdin,
  type ExternalSource,
  type LoginOptions,
  type Machine,
  type NamedValue,
  type OutputRef,
  type StdinValue,
  type Task,
} from '../../provision';
import { CHANGE_HASH, CHANGE_TOKEN, readsChangeToken } from '../../provision/rke2-k3s/change-token';
import { removalStdin, groupRemovals, type PlannedTask } from './plan';

/** Options of {@link TaskCommands}. */
export interface TaskCommandsOptions {
  /** Name of the cluster's component: resource names begin with it. */
  readonly name: string;
  readonly parent: pulumi.Resource;
  /** The value of a secret. */
  readonly secret: (ref: ObjectKeyRef) => pulumi.Input<string>;
  readonly passphrase?: pulumi.Input<string>;
  readonly dialAttempts: number;
  /** The machine that a task serves, if it serves a single one. */
  readonly serves: (task: Task) => string | undefined;
  /** Whether the effects of a task may not be removed. */
  readonly isProtected: (task: Task) => boolean;
  /** Whether a task serves a machine that is lost, so that it has nothing to do. */
  readonly servesLostMachine: (task: Task) => boolean;
  /** Whether a task would run on a machine that is lost, so that it cannot even remove anything. */
  readonly runsOnLostMachine: (task: Task) => boolean;
}

/** Attempts to reach a machine for its clean-up: a machine that responds at all responds soon. */
const REMOVAL_DIAL_ATTEMPTS = 3;
/** Limit of one attempt, in seconds. */
const DIAL_TIMEOUT_SECONDS = 15;

/** All inputs that this file gives to a Command. */
const INPUTS = ['addPreviousOutputInEnv', 'connection', 'create', 'logging', 'stdin', 'update'];

/** The part of a task that a Command executes: its script and what the script reads. */
interface TaskAction {
  readonly script: (task: Task) => string;
  readonly values: (task: Task) => readonly StdinValue[];
}

const APPLY: TaskAction = { script: ({ apply }) => apply, values: ({ stdin = [] }) => stdin };
const REMOVE: TaskAction = { script: ({ remove = '' }) => remove, values: removalStdin };

/**
 * The Commands of a plan. A task becomes a Command that applies it. If the task has something to remove,
 * another Command comes before it, which does nothing until it is deleted. There are two because Pulumi's
 * state does not keep a Command that failed: what it had done until then would never be removed.
 */
export class TaskCommands {
  private readonly applied = new Map<string, pulumi.CustomResource & { readonly stdout: pulumi.Output<string> }>();
  private readonly removals = new Map<string, pulumi.CustomResource>();
  private readonly planned: ReadonlyMap<string, PlannedTask>;
  private readonly removalsBefore: ReadonlyMap<string, readonly Task[]>;

  constructor(
    planned: readonly PlannedTask[],
    private readonly options: TaskCommandsOptions,
  ) {
    this.planned = new Map(planned.map((each) => [each.task.id, each]));
    this.removalsBefore = groupRemovals(
      planned.map(({ task }) => task),
      options.serves,
    );
    for (const each of planned) this.register(each);
  }

  /** All Commands: once they exist, the cluster does. */
  get resources(): readonly pulumi.Resource[] {
    return [...this.removals.values(), ...this.applied.values()];
  }

  /** An output of a task. Secret. */
  output(ref: OutputRef): pulumi.Output<string> {
    return this.findOutput(ref).apply((text) => {
      if (text !== undefined) return text;
      throw new Error(`${this.options.name}: ${ref.task} succeeded without giving its "${ref.name}"`);
    });
  }

  /** An output of a task, or undefined if its script gave none. Secret either way. */
  private findOutput({ task, name }: OutputRef): pulumi.Output<string | undefined> {
    const source = this.applied.get(task);
    if (source === undefined)
      throw new TypeError(`${task} was not carried out, so its output "${name}" is not to be had`);
    return pulumi.secret(source.stdout.apply((stdout) => decodeOutput(parseScriptResult(stdout), name)));
  }

  private register(planned: PlannedTask): void {
    const { task } = planned;
    const { servesLostMachine, runsOnLostMachine } = this.options;
    const needs = [...new Set(task.after.flatMap((id) => this.effectiveDependencies(id)))];
    for (const each of [task, ...(this.removalsBefore.get(task.id) ?? [])]) this.registerRemoval(each, needs);
    const own = [task, ...(this.removalsBefore.get(task.id) ?? [])].flatMap(({ id }) => this.removals.get(id) ?? []);
    const pointless = servesLostMachine(task) || runsOnLostMachine(task);
    // An output of a lost machine may still be needed, such as the join token. It stays in the state
    // unchanged.
    if (pointless && !this.isNeeded(task)) return;
    const line = this.line(planned, task.id, APPLY);
    this.applied.set(
      task.id,
      this.command(planned, task.id, { create: line, update: line }, APPLY, {
        dependsOn: [...own, ...needs],
        ...(pointless ? { ignoreChanges: [...INPUTS] } : {}),
      }),
    );
  }

  /** Whether a task that is executed, or the component itself, reads the outputs of this task. */
  private isNeeded({ id, outputs = [] }: Task): boolean {
    const readers = [...this.planned.values()].filter(({ task: { stdin } }) =>
      leavesIn(stdin).some((leaf) => 'output' in leaf && leaf.output.task === id),
    );
    const isDone = ({ task }: PlannedTask) =>
      !this.options.servesLostMachine(task) && !this.options.runsOnLostMachine(task);
    return outputs.length > 0 && (readers.length === 0 || readers.some(isDone));
  }

  /** Registers a task's removal once, either with an earlier task of its machine or with the task itself. */
  private registerRemoval(task: Task, needs: readonly pulumi.Resource[]): void {
    const planned = this.planned.get(task.id);
    if (task.remove === undefined || planned === undefined || this.removals.has(task.id)) return;
    const { runsOnLostMachine, isProtected } = this.options;
    const label = `${task.id}/removal`;
    const inputs = runsOnLostMachine(task) ? {} : { delete: this.line(planned, label, REMOVE) };
    const before = task.after.flatMap((id) => this.removals.get(id) ?? []);
    const dependsOn = [...new Set([...needs, ...before])];
    const options = { protect: isProtected(task), dependsOn };
    this.removals.set(task.id, this.command(planned, label, inputs, REMOVE, options));
  }

  /**
   * The resources of a task for `dependsOn`. A task of a lost machine has none, so these are the ones that it
   * comes after.
   */
  private effectiveDependencies(id: string): pulumi.Resource[] {
    const own = this.applied.get(id) ?? this.removals.get(id);
    if (own !== undefined) return [own];
    return (this.planned.get(id)?.task.after ?? []).flatMap((before) => this.effectiveDependencies(before));
  }

  private line({ actual }: PlannedTask, label: string, { script }: TaskAction): pulumi.Output<string> {
    return pulumi.output(actual).apply((task) => launcher(`${this.options.name}/${label}`, script(task)));
  }

  private command(
    planned: PlannedTask,
    label: string,
    lines: Pick<command.local.CommandArgs, 'create' | 'delete' | 'update'>,
    part: TaskAction,
    opts: pulumi.CustomResourceOptions,
  ) {
    const { name, parent } = this.options;
    const { machine, timeoutSeconds } = planned.task;
    const limit = `${timeoutSeconds}s`;
    const common = { ...lines, stdin: this.stdin(planned, part), addPreviousOutputInEnv: false };
    const options: pulumi.CustomResourceOptions = {
      parent,
      additionalSecretOutputs: ['stdin', 'stdout', 'stderr'],
      customTimeouts: { create: limit, update: limit, delete: limit },
      ...opts,
    };
    const { local, remote } = commandPackage();
    if (machine === undefined) {
      return new local.Command(`${name}/${label}`, { ...common, logging: 'none' }, options);
    }
    const connection = this.connection(planned, lines.delete === undefined);
    return new remote.Command(`${name}/${label}`, { ...common, logging: 'none', connection }, options);
  }

  private stdin({ task, actual }: PlannedTask, { script, values }: TaskAction): pulumi.Output<string> {
    const steps = this.dependentSteps(task);
    const secrets = steps.flatMap((step) => leavesIn(step.task.stdin).filter((leaf) => 'secret' in leaf));
    const leaves = [...leavesIn(values(task)), ...secrets];
    const inputs = Object.fromEntries(leaves.map((leaf) => [keyOf(leaf), this.valueOf(leaf)]));
    const next = pulumi.all(steps.map((step) => pulumi.output(step.actual)));
    const text = pulumi.all([pulumi.output(actual), pulumi.all(inputs), next]).apply(([known, found, knownSteps]) => {
      const lookup = (leaf: ExternalSource): string => {
        const value = found[keyOf(leaf)];
        if (value === undefined) throw new TypeError(`${task.id} reads ${keyOf(leaf)}, which was not looked up`);
        return value;
      };
      const change = () => digest([knownSteps.map(({ apply }) => apply), secrets.map(lookup)]);
      const stdin = values(known).map(({ name, from }) => {
        return { name, value: name === CHANGE_HASH ? change() : renderSource(from, lookup) };
      });
      const { user = 'root', asUser = false } = known.machine ?? {};
      return launcherStdin(script(known), { user, asUser }, stdin);
    });
    return pulumi.secret(text);
  }

  /**
   * The steps that read the change token of a task. The token changes with their secrets as well as with
   * their scripts, because Pulumi keeps the former inputs of a Command that failed: when a secret is set back
   * to its former value, nothing else changes.
   */
  private dependentSteps({ id, outputs = [] }: Task): readonly PlannedTask[] {
    if (!outputs.includes(CHANGE_TOKEN)) return [];
    return [...this.planned.values()].filter(({ task }) => readsChangeToken(task, id));
  }

  private valueOf(leaf: ExternalSource): pulumi.Input<string> {
    if ('secret' in leaf) return this.options.secret(leaf.secret);
    // A script itself reports what it cannot do without. A failed run of RKE, for one, gives no kubeconfig.
    if ('output' in leaf) return this.findOutput(leaf.output).apply((text) => text ?? '');
    throw new TypeError(`a file, ${leaf.file}, cannot be read here`);
  }

  private connection({ actual }: PlannedTask, applies: boolean) {
    const dialErrorLimit = applies ? this.options.dialAttempts : REMOVAL_DIAL_ATTEMPTS;
    const common = { dialErrorLimit, perDialTimeout: DIAL_TIMEOUT_SECONDS };
    const { passphrase } = this.options;
    const key = pulumi.output(actual).apply(({ machine }) => this.keyOf(machine));
    const jump = pulumi.output(actual).apply(({ machine }) => this.keyOf(machine?.bastion));
    return pulumi
      .all([pulumi.output(actual), key, jump, passphrase])
      .apply(([{ machine }, privateKey, jumpKey, phrase]) => {
        if (machine === undefined) throw new TypeError('a task moved off its machine once all addresses were known');
        const { bastion } = machine;
        const unlock = (given: ObjectKeyRef | undefined) =>
          phrase === undefined || given === undefined || JSON.stringify(given) !== JSON.stringify(machine.sshKey)
            ? {}
            : { privateKeyPassword: phrase };
        const own = { ...endpoint(machine), ...common, privateKey, ...unlock(machine.sshKey) };
        if (bastion === undefined) return own;
        return { ...own, proxy: { ...endpoint(bastion), ...common, privateKey: jumpKey, ...unlock(bastion.sshKey) } };
      });
  }

  private keyOf(machine: Omit<Machine, 'bastion'> | undefined): pulumi.Input<string | undefined> {
    return machine?.sshKey === undefined ? undefined : pulumi.secret(this.options.secret(machine.sshKey));
  }
}

function endpoint({ address, port = 22, user = 'root', hostKey }: Omit<Machine, 'bastion'>) {
  return { host: address, port, user, ...(hostKey === undefined ? {} : { hostKey }) };
}

const leavesIn = (values: readonly StdinValue[] = []): readonly ExternalSource[] =>
  values.flatMap(({ from }) => externalSources(from));

/** A hash in place of secrets, for a script that only needs to know whether they have changed. */
const digest = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** A key that is unique to a value while values are looked up. */
function keyOf(leaf: ExternalSource): string {
  if ('secret' in leaf) return `secret ${leaf.secret.namespace ?? ''}/${leaf.secret.name} ${leaf.secret.key}`;
  if ('output' in leaf) return `output ${leaf.output.task} ${leaf.output.name}`;
  return `file ${leaf.file}`;
}

/**
 * The command line of a Command, which reads a task's script from the first line of its stdin.
 *
 * When a Command fails, its provider puts the whole command line, stdout and stderr into the error, in plain
 * text. So the command line is short, and shows only the task's name and 12 digits of the script's hash, in
 * the error and in the machine's process list. The script's stdout, which may contain secret outputs, is
 * printed only on success; on failure only the message of the script's result goes to stderr.
 *
 * @testonly
 */
export function launcher(label: string, script: string): string {
  const digest = createHash('sha256').update(script).digest('hex').slice(0, 12);
  // Keeps quotes and other characters that a login shell might interpret out of the line.
  const name = label.replace(/[^A-Za-z0-9_.:/-]/g, '_');
  return `sh -c 'IFS= read -r script; eval "$(printf %s "$script" | base64 -d)"' ${name}@${digest}`;
}

/**
 * Extracts the member `message` from a script's result: characters other than a quote or a backslash, or a
 * backslash with the character that it escapes, up to the closing quote.
 */
const MESSAGE = String.raw`sed -n -E 's/.*"message":"(([^"\\]|\\.)*)".*/\1/p'`;

/** Undoes the escapes of JSON that `printf %b` does not. */
const UNQUOTED = String.raw`sed 's/\\"/"/g'`;

/**
 * Runs a command line. Prints all of its stdout or, if it failed, only the message of its result to stderr.
 */
function hideStdoutOnFailure(line: string): string {
  return [
    `answer=$(${line})`,
    'code=$?',
    `if [ "$code" -eq 0 ]; then printf '%s\\n' "$answer"; exit 0; fi`,
    `message=$(printf '%s\\n' "$answer" | tail -n 1 | ${MESSAGE} | ${UNQUOTED})`,
    `printf '%b\\n' "\${message:-the script ended with $code and gave no answer}" >&2`,
    'exit "$code"',
  ].join('\n');
}

/**
 * The launcher's stdin: the script, then the values that it reads.
 *
 * @testonly
 */
export function launcherStdin(script: string, login: LoginOptions, values: readonly NamedValue[]): string {
  return `${base64(hideStdoutOnFailure(sshCommand(script, login)))}\n${encodeStdin(values)}`;
}

const NAME = '@pulumi/command';

/**
 * The package with the Command resources. It is loaded with the first cluster: programs without one need not
 * install it.
 *
 * @throws pulumi.RunError if it is not installed; Pulumi shows it without a stack trace
 */
export function commandPackage(): typeof command {
  try {
    // oxlint-disable-next-line typescript/no-require-imports -- an import would load it for everybody
    return require('@pulumi/command') as typeof command;
  } catch (error) {
    const { code, message = '' } = error as { readonly code?: unknown; readonly message?: string };
    if (code !== 'MODULE_NOT_FOUND' || !message.startsWith(`Cannot find module '${NAME}'`)) throw error;
    throw new pulumi.RunError(
      `a RemoteCluster needs the package ${NAME}, which is not installed: its steps on machines are resources of that package. ` +
        `Run: npm install ${NAME}`,
    );
  }
}
