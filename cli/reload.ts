import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { childTypes } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import { duration } from '../local/assets/progress';
import { spawnGuarded } from '../local/guarded-process';
import { RestMapper } from '../operator/client/rest-mapper';
import { installOn, type DevCluster } from './dev-cluster';
import { programsOf, type DevOperators, type DevSession } from './dev-operators';
import { CliError, InterruptedError } from './errors';
import { formatError } from './format-error';
import { localPlatform, localSamples, type LocalPlatform } from './local-platform';
import { applyObjects } from './objects';
import type { LiveTable } from './object-watcher';
import type { OperatorProgram } from './operator-bundle';
import { loadProject } from './project';
import { SourceWatcher } from './source-watcher';
import { unrenderedNotices } from './unrendered-types';

/** What is reloaded, and with what. */
interface ReloadOptions extends DevSession {
  readonly cluster: DevCluster;
  readonly operators: DevOperators;
  readonly table: LiveTable;
}

/** Loads the project anew when one of its files is saved: CRDs, permissions, operators, samples. */
export class Reload {
  private readonly watcher = new SourceWatcher();
  private readonly types: TypeChecker;
  private readonly stopping = new AbortController();
  private readonly signal: AbortSignal;
  private reloading: Promise<void> = Promise.resolve();
  // What stands on the control plane now, which may be the half of a reload that has failed; undefined: not known.
  private installed: readonly KubeObject[] | undefined;
  private shown: string;
  private samples: ReadonlySet<string>;
  private notices: readonly string[];
  /** What the last reload has changed. */
  private done: string[] = [];

  /** Watches from here on: a save before `run` is not missed. */
  constructor(private readonly options: ReloadOptions) {
    const { platform, programs, view } = options;
    this.signal = AbortSignal.any([options.signal, this.stopping.signal]);
    this.types = new TypeChecker(platform.project.root, (line) => view.print(line));
    this.installed = platform.objects;
    this.shown = shownBy(platform);
    this.samples = new Set(
      options.args.samples ? this.samplesOf(platform).map((sample) => JSON.stringify(sample)) : [],
    );
    this.notices = unrenderedNotices(platform.kinds);
    this.watch(platform, programs);
  }

  /** Reloads until it is stopped. Mistakes in the sources are printed, and what ran before goes on. */
  async run(): Promise<never> {
    this.types.start();
    await this.options.operators.prewarm(this.options.platform, this.options.programs);
    for (;;) {
      await this.watcher.next();
      // After `stop` nothing is started.
      if (this.signal.aborted) return new Promise<never>(() => undefined);
      const { saved } = this.watcher;
      this.reloading = this.reload(saved).catch((error: unknown) => {
        // What it was doing was cut off.
        if (this.signal.aborted || (saved.aborted && error === saved.reason)) return;
        if (error instanceof CliError) this.watcher.add(error.files);
        this.options.view.print([formatError(error), ...this.whatGoesOn()].join('\n'));
      });
      await this.reloading;
    }
  }

  /** Ends it. What is being reloaded ends first, so that nothing is started after this. */
  async stop(): Promise<void> {
    this.stopping.abort(new InterruptedError('SIGTERM'));
    this.watcher.close();
    await Promise.all([this.reloading, this.types.stop()]);
  }

  /** What the user has after a reload that failed. */
  private whatGoesOn(): readonly string[] {
    if (!this.options.operators.isComplete) return []; // The error says so.
    if (this.done.length === 0) return ['What ran before goes on.'];
    return [`Loaded before that: ${this.done.join(', ')}. The rest goes on as before.`];
  }

  /** @param saved - aborts when a file is saved meanwhile: what may take long is not waited for then */
  private async reload(saved: AbortSignal): Promise<void> {
    this.done = [];
    const { args, operators, table, view, platform: before } = this.options;
    const { signal } = this;
    const began = Date.now();
    const project = await loadProject(before.project.root);
    const { authority } = this.options;
    const platform = localPlatform(project, { ...args, samplesNamespace: args.namespace, authority });
    const programs = await programsOf(platform);
    signal.throwIfAborted();
    this.watch(platform, programs);
    assertSameOperators(before, platform);
    const done = this.done;
    done.push(...(await this.install(platform)));
    for (const [i, { operator }] of platform.operators.entries()) {
      if (operators.isCurrent(platform, i, programs)) continue;
      await operators.replace(platform, i, { programs, signal, saved });
      done.push(`operator ${operator.name}`);
    }
    const samples = args.samples ? await this.applySamples(platform) : 0;
    if (samples > 0) done.push(samples === 1 ? '1 sample' : `${samples} samples`);
    await operators.prewarm(platform, programs);
    if (done.length > 0) view.print(`Loaded anew in ${duration(Date.now() - began)}: ${done.join(', ')}.`);
    this.printNotices(platform);
    if (shownBy(platform) === this.shown) return;
    // Last, since it waits until all objects can be read: one that cannot be converted to the new version keeps it from that.
    await table.watch(platform.kinds, AbortSignal.any([signal, saved]));
    this.shown = shownBy(platform);
  }

  /** Prints the notices about the kinds that are new. */
  private printNotices({ kinds }: LocalPlatform): void {
    const before = this.notices;
    this.notices = unrenderedNotices(kinds);
    for (const notice of this.notices.filter((text) => !before.includes(text))) this.options.view.print(notice);
  }

  /** @returns what has changed, for the user */
  private async install(platform: LocalPlatform): Promise<string[]> {
    const { objects } = platform;
    const { cluster, view } = this.options;
    if (isDeepStrictEqual(objects, this.installed)) {
      // A converter may have changed.
      (await cluster.serveConversion(platform)).accept();
      return [];
    }
    const known = new Set(this.installed?.map((object) => JSON.stringify(object)));
    this.installed = undefined;
    await installOn(cluster, platform, { view, signal: this.signal });
    this.installed = objects;
    const crds = objects.filter(
      (object) => object.kind === 'CustomResourceDefinition' && !known.has(JSON.stringify(object)),
    );
    return crds.length > 0 ? [`CRD ${crds.map(({ metadata }) => metadata.name).join(', ')}`] : ['permissions'];
  }

  /** @returns how many samples have changed */
  private async applySamples(platform: LocalPlatform): Promise<number> {
    const { client } = this.options.cluster;
    const all = this.samplesOf(platform);
    const changed = all.filter((sample) => !this.samples.has(JSON.stringify(sample)));
    const types = new RestMapper(
      client,
      platform.kinds.map(({ type }) => type),
    );
    await applyObjects(changed, { client, types, namespace: platform.samplesNamespace, signal: this.signal });
    this.samples = new Set(all.map((sample) => JSON.stringify(sample)));
    return changed.length;
  }

  private samplesOf(platform: LocalPlatform) {
    return localSamples(platform, this.options.cluster.kubeconfig);
  }

  private watch({ project }: LocalPlatform, programs: readonly OperatorProgram[]): void {
    this.watcher.add([...project.sources, ...programs.flatMap(({ sources }) => sources)]);
  }
}

/** The types that the table shows, as one text. */
function shownBy({ kinds }: LocalPlatform): string {
  return JSON.stringify(kinds.map((kind) => [kind.type, childTypes(kind)]));
}

/** @throws CliError when package.json names other operators than when the command was started */
function assertSameOperators(before: LocalPlatform, after: LocalPlatform): void {
  const names = ({ operators }: LocalPlatform): readonly string[] => operators.map(({ operator }) => operator.name);
  if (isDeepStrictEqual(names(before), names(after)) && before.namespace === after.namespace) return;
  throw new CliError(
    `package.json names other operators now: ${names(after).join(', ')}. End this command and start it again.`,
  );
}

/** Checks the project's types in the background, by its own TypeScript. A bundler looks at no types. */
class TypeChecker {
  private child: ChildProcess | undefined;

  constructor(
    private readonly root: string,
    private readonly print: (line: string) => void,
  ) {}

  start(): void {
    const tsc = this.compiler();
    if (tsc === undefined) return;
    const args = [tsc, '--noEmit', '--watch', '--preserveWatchOutput', '--pretty', 'false'];
    this.child = spawnGuarded(process.execPath, args, { cwd: this.root, env: process.env, output: 'pipe' });
    // Without it the types are not checked, which the build of the project does too.
    this.child.on('error', (error) => this.print(`The types cannot be checked: ${error.message}`));
    this.child.stderr?.resume();
    let failed = false;
    let rest = '';
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const isError = /: error TS\d+: /.test(line);
        if (isError) this.print(line);
        const [, errors] = /Found (\d+) errors?\. Watching for file changes\.$/.exec(line) ?? [];
        if (errors === '0' && failed) this.print('The types are right again.');
        if (errors !== undefined) failed = errors !== '0';
      }
    });
  }

  async stop(): Promise<void> {
    const { child } = this;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill();
    await ended;
  }

  /** The project's own TypeScript; undefined where it has none, or no tsconfig.json. */
  private compiler(): string | undefined {
    if (!existsSync(path.join(this.root, 'tsconfig.json'))) return undefined;
    try {
      return createRequire(path.join(this.root, 'package.json')).resolve('typescript/bin/tsc');
    } catch {
      return undefined;
    }
  }
}
