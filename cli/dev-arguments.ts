import { Command, Option } from '@commander-js/extra-typings';
import { UsageError } from './errors';
import { collect, flagError, namespaceName, outputOption, parseInteger, type TakeArguments } from './flags';

/** The parsed arguments of `kindred dev`. */
export interface DevArguments {
  readonly command: 'dev';
  /** End as soon as every object is Ready. */
  readonly once: boolean;
  /**
   * How long the objects may take to become Ready, in seconds, not counting the download or build of the
   * parts.
   */
  readonly timeoutSeconds: number;
  /** Context of a cluster that exists; undefined: a control plane on this machine. */
  readonly context: string | undefined;
  /** Namespace of the operator; undefined: that of `kindred synth`. */
  readonly operatorNamespace: string | undefined;
  /** Nobody is asked before a cluster is touched that is not on this machine. */
  readonly yes: boolean;
  /** The API server's port; undefined: a free one. */
  readonly port: number | undefined;
  /** Port of the operator's metrics; 0: a free one. */
  readonly metricsPort: number;
  /** The user's own manifests. */
  readonly files: readonly string[];
  readonly samples: boolean;
  /** Namespace of the samples, and of the user's objects that set none; undefined: that of `kindred synth`. */
  readonly namespace: string | undefined;
  /**
   * The operator's log file; undefined: one in the data directory, which is removed when the command ends.
   */
  readonly logFile: string | undefined;
  readonly logLevel: string;
  /** What installs the platform; `auto`: Pulumi if there is one that works, else server-side apply. */
  readonly installer: 'auto' | 'pulumi' | 'apply';
  /** Optional operators to run too, by name. */
  readonly operators: readonly string[];
  /** Port of the inspector of the operator, on 127.0.0.1; undefined: none. */
  readonly inspect: number | undefined;
  /** With `json`, the objects are printed at the end of `--once`, and all else goes to stderr. */
  readonly output: 'text' | 'json';
  /** Run pods in containers, and the operator as its Deployment. */
  readonly pods: boolean;
}

/** Adds `kindred dev` to the command line. */
export function addDev(program: Command, take: TakeArguments<DevArguments>): void {
  program.addCommand(
    devCommand()
      .copyInheritedSettings(program)
      .action((values) => take(devArguments(values))),
  );
}

const none: readonly string[] = [];

const installers = ['auto', 'pulumi', 'apply'] as const;
const logLevels = ['error', 'warn', 'info', 'debug', 'trace'] as const;

const installerOption = new Option(
  '--installer <which>',
  "pulumi: by the Pulumi stack; apply: by server-side apply; auto: by Pulumi where there is one that works, on PATH or as npm's package",
)
  .choices(installers)
  .default('auto' as const);

const operatorOption = new Option(
  '--operator <name>',
  'run this optional operator of package.json too, such as one that acts on machines; may be repeated',
)
  .argParser(collect)
  .default(none, 'none');

/** The options of `kindred dev`. */
function devCommand() {
  return new Command('dev')
    .description('a Kubernetes control plane on this machine with the CRDs, the operator and the samples')
    .addHelpText(
      'after',
      `
The control plane is made of real parts and listens on 127.0.0.1. The operator runs under the platform's own
ServiceAccount. The samples are shown until Ctrl-C. With --context it all happens in a cluster that you have, whose
Deployments are left as they are; CRDs, permissions and samples stay there at the end.`,
    )
    .option('--once', 'end as soon as every object is Ready: exit code 0; or 1 with the reasons')
    .option(
      '--timeout <seconds>',
      'how long the objects may take to become Ready, not counting the parts',
      (value) => parseInteger('timeout', value, 1, 86_400),
      180,
    )
    .addOption(
      new Option('-f, --file <file>', 'apply these objects too; may be repeated')
        .argParser(collect)
        .default(none, 'none'),
    )
    .option('--no-samples', 'apply only the objects of --file')
    .option(
      '-n, --namespace <name>',
      'namespace of the samples and of objects that name none (default: <name of the package>-samples)',
      (value) => namespaceName('namespace', value),
    )
    .option(
      '--context <name>',
      'a cluster that exists, by its context in the kubeconfig, instead of a control plane on this machine',
      (value) => contextName(value),
    )
    .option(
      '--operator-namespace <name>',
      'namespace of the operator, where that was installed elsewhere (default: <name of the package>-system)',
      (value) => namespaceName('operator-namespace', value),
    )
    .option('--yes', 'do not ask before a cluster is touched that is not on this machine')
    .option('--port <port>', "the API server's port (default: a free one)", (value) =>
      parseInteger('port', value, 1, 65_535),
    )
    .option(
      '--metrics-port <port>',
      "of the operator's /metrics, /healthz and /readyz (default: a free one)",
      (value) => parseInteger('metrics-port', value, 0, 65_535),
    )
    .option('--log-file <file>', 'where the operator logs (default: in the data folder, which goes at the end)')
    .addOption(new Option('--log-level <level>', 'how much the operator logs (default: info)').choices(logLevels))
    .addOption(installerOption)
    .option('--inspect [port]', 'let a debugger stop in the sources, on 127.0.0.1 (default port: 9229)', (value) =>
      parseInteger('inspect', value, 1, 65_535),
    )
    .option(
      '--pods',
      'run containers: the operator as its Deployment, and in every other pod a small HTTP server in place of its images, ' +
        'since none can be pulled. Needs Linux, root, containerd, runc, CNI plugins',
    )
    .addOption(outputOption('with --once, the objects and whether they are Ready'))
    .addOption(operatorOption);
}

function devArguments(values: ReturnType<ReturnType<typeof devCommand>['opts']>): DevArguments {
  if (!values.samples && values.file.length === 0) {
    throw new UsageError('--no-samples leaves nothing to run: name your own objects with --file=FILE');
  }
  if (values.output === 'json' && values.once !== true)
    throw new UsageError('--output=json is what a script reads at the end: it goes with --once');
  if (values.context !== undefined) assertForContext(values);
  else {
    const flag =
      values.yes === true ? '--yes' : values.operatorNamespace === undefined ? undefined : '--operator-namespace';
    if (flag !== undefined) throw new UsageError(`${flag} is for a cluster that exists: it goes with --context`);
  }
  if (values.pods === true) {
    const given = (['metricsPort', 'logFile', 'logLevel', 'inspect'] as const).find(
      (name) => values[name] !== undefined,
    );
    if (given !== undefined) {
      const flag = given.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      throw new UsageError(`--${flag} is for an operator that is a process: with --pods it runs as its Deployment`);
    }
    if (values.operator.length > 0) {
      throw new UsageError('--operator does not go with --pods: a pod reaches nothing outside from here');
    }
  }
  return {
    command: 'dev',
    once: values.once === true,
    timeoutSeconds: values.timeout,
    context: values.context,
    operatorNamespace: values.operatorNamespace,
    yes: values.yes === true,
    port: values.port,
    metricsPort: values.metricsPort ?? 0,
    files: values.file,
    samples: values.samples,
    namespace: values.namespace,
    logFile: values.logFile,
    logLevel: values.logLevel ?? 'info',
    installer: values.installer,
    operators: values.operator,
    inspect: values.inspect === true ? 9229 : values.inspect,
    pods: values.pods === true,
    output: values.output,
  };
}

/** An empty one would be the current context, which nobody has named. */
function contextName(value: string): string {
  if (value !== '') return value;
  throw flagError('context', value, 'it is empty: name a context of the kubeconfig (kubectl config get-contexts)');
}

/** Refuses what is for a control plane on this machine only. */
function assertForContext({ port, pods, installer }: ReturnType<ReturnType<typeof devCommand>['opts']>): void {
  const flag =
    port !== undefined
      ? '--port'
      : pods === true
        ? '--pods'
        : installer === 'pulumi'
          ? '--installer=pulumi'
          : undefined;
  if (flag === undefined) return;
  throw new UsageError(`${flag} is for a control plane on this machine: it does not go with --context`);
}
