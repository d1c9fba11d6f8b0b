import { commandNames, parseArguments, takeProject } from '../../cli/arguments';
import { UsageError } from '../../cli/errors';
import { version } from '../../package.json';

/** What the command line prints by itself. */
function printed(...argv: readonly string[]): string {
  const parsed = parseArguments(argv);
  if (parsed.command !== 'print') throw new Error(`it is ${parsed.command}`);
  return parsed.text;
}

const withFiles = ['synth', '--image=provisioner=p', '--config-secret=files'];

describe('the command line', () => {
  test('start, with what it defaults to', () => {
    expect(parseArguments(['dev'])).toEqual({
      command: 'dev',
      once: false,
      timeoutSeconds: 180,
      port: undefined,
      metricsPort: 0,
      files: [],
      samples: true,
      namespace: undefined,
      logFile: undefined,
      logLevel: 'info',
      installer: 'auto',
      operators: [],
      pods: false,
      yes: false,
      output: 'text',
    });
  });

  test('start, with everything given', () => {
    const given = ['--once', '--timeout=5', '--port', '6443', '--metrics-port=8080', '-f', 'a.yaml', '--file=b.yaml'];
    const more = [
      '--no-samples',
      '-n',
      'mine',
      '--log-file=op.log',
      '--log-level=debug',
      '--installer=apply',
      '--operator=provisioner',
      '--operator=second',
    ];
    expect(parseArguments(['dev', ...given, ...more])).toEqual({
      command: 'dev',
      once: true,
      timeoutSeconds: 5,
      port: 6443,
      metricsPort: 8080,
      files: ['a.yaml', 'b.yaml'],
      samples: false,
      namespace: 'mine',
      logFile: 'op.log',
      logLevel: 'debug',
      installer: 'apply',
      operators: ['provisioner', 'second'],
      pods: false,
      yes: false,
      output: 'text',
    });
    expect(parseArguments(['dev', '--once', '-o', 'json'])).toMatchObject({ output: 'json' });
    expect(parseArguments(['dev', '--pods'])).toMatchObject({ pods: true });
    expect(parseArguments(['dev', '--inspect'])).toMatchObject({ inspect: 9229 });
    expect(parseArguments(['dev', '--inspect=5'])).toMatchObject({ inspect: 5 });
    expect(parseArguments(['dev', '--context=kind', '--yes'])).toMatchObject({ context: 'kind', yes: true });
  });

  test('synth', () => {
    expect(parseArguments(['synth', '--out=x', '--image=i'])).toMatchObject({
      command: 'synth',
      out: 'x',
      images: ['i'],
    });
  });

  test('synth with the files of an operator', () => {
    const files = ['--config-file=a/b.yml=b.yml', '--config-file=c=c'];
    expect(parseArguments([...withFiles, ...files])).toMatchObject({
      images: ['provisioner=p'],
      configSecret: 'files',
      configFiles: { 'a/b.yml': 'b.yml', c: 'c' },
    });
  });

  test('render and docs', () => {
    expect(parseArguments(['render', 'a.yaml', '-'])).toEqual({
      ...{ command: 'render', files: ['a.yaml', '-'], namespace: 'default', output: 'yaml' },
    });
    expect(parseArguments(['render', 'a.yaml', '-n', 'mine', '-o', 'tree'])).toMatchObject({
      namespace: 'mine',
      output: 'tree',
    });
    expect(parseArguments(['docs'])).toEqual({
      ...{ command: 'docs', out: 'docs/kinds', check: false, output: 'text' },
    });
    expect(parseArguments(['docs', '--out=x', '--check'])).toMatchObject({ command: 'docs', out: 'x', check: true });
    expect(parseArguments(['prepare', '-o', 'json'])).toEqual({ command: 'prepare', output: 'json' });
  });

  test("run hands everything on, --help too: the arguments are the operator's", () => {
    expect(parseArguments(['run', '--kubeconfig=a', '--help'])).toEqual({
      command: 'run',
      rest: ['--kubeconfig=a', '--help'],
    });
  });

  test.each([
    [[], 'Usage: kindred [options] [command]'],
    [['help'], 'Usage: kindred [options] [command]'],
    [['--help'], 'Usage: kindred [options] [command]'],
    [['-h'], 'Usage: kindred [options] [command]'],
    [['help', 'dev'], 'Usage: kindred dev [options]'],
    [['dev', '--help'], 'Usage: kindred dev [options]'],
    [['dev', '--port=1', '-h'], 'Usage: kindred dev [options]'],
    [['synth', '-h'], 'Usage: kindred synth [options]'],
    [['help', 'run'], 'Usage: kindred run [options]'],
    [['--version'], version],
  ])('%j is answered at once', (argv, start) => {
    expect(printed(...argv).startsWith(start)).toBe(true);
  });

  test.each<[string[], RegExp]>([
    [
      ['begin'],
      /^"begin" is no command; there are new, dev, render, synth, build, docs, run, prepare, help\. Try: kindred help$/,
    ],
    [['--frob'], /^unknown option '--frob'\. See: kindred help$/],
    [['dev', '--frob'], /^unknown option '--frob'\. See: kindred help dev$/],
    [['dev', '--onse'], /^unknown option '--onse' \(Did you mean --once\?\)\. See: kindred help dev$/],
    [['dev', '--timeout'], /^option '--timeout <seconds>' argument missing\. See: kindred help dev$/],
    [['dev', 'now'], /^too many arguments for 'dev'.* See: kindred help dev$/],
    [
      ['help', 'begin'],
      /^there is no help on "begin"; there is on new, dev, render, synth, build, docs, run, prepare, help$/,
    ],
    [['dev', '--port=http'], /^--port=http: it must be a whole number from 1 to 65535$/],
    [['dev', '--port=0'], /^--port=0: /],
    [
      ['dev', '--context=kind', '--port=6443'],
      /^--port is for a control plane on this machine: it does not go with --context$/,
    ],
    [['dev', '--context=kind', '--pods'], /^--pods is for a control plane on this machine/],
    [['dev', '--context=kind', '--installer=pulumi'], /^--installer=pulumi is for a control plane on this machine/],
    [['dev', '--context='], /^--context=: it is empty: name a context of the kubeconfig/],
    [['dev', '--operator-namespace=x'], /^--operator-namespace is for a cluster that exists: it goes with --context$/],
    [['dev', '--yes'], /^--yes is for a cluster that exists: it goes with --context$/],
    [['dev', '--port=65536'], /^--port=65536: /],
    [['dev', '--port='], /^--port=: /],
    [['dev', '--timeout=1.5'], /^--timeout=1\.5: it must be a whole number from 1 to 86400$/],
    [['dev', '--timeout=-1'], /^--timeout=-1: /],
    [
      ['dev', '--log-level=loud'],
      /^option '--log-level <level>' argument 'loud' is invalid\. Allowed choices are error, warn, info, debug, trace\. See: /,
    ],
    [
      ['dev', '--pods', '--log-file=a'],
      /^--log-file is for an operator that is a process: with --pods it runs as its D/,
    ],
    [['dev', '--pods', '--metrics-port=1'], /^--metrics-port is for /],
    [
      ['dev', '--pods', '--operator=a'],
      /^--operator does not go with --pods: a pod reaches nothing outside from here$/,
    ],
    [['dev', '--no-samples'], /^--no-samples leaves nothing to run: .*--file=FILE$/],
    [
      ['dev', '-n', 'Bad_NS'],
      /^--namespace=Bad_NS: a namespace's name must be at most 63 characters: lower-case letters/,
    ],
    [['dev', '--namespace='], /^--namespace=: a namespace's name must be /],
    [
      ['synth', '--namespace=UPPER'],
      /^--namespace=UPPER: a namespace's name must be at most 63 characters: lower-case/,
    ],
    [['synth', '--samples-namespace=a.b'], /^--samples-namespace=a\.b: a namespace's name must be /],
    [[...withFiles, '--config-file=a.yml'], /^--config-file=a\.yml: give PATH=KEY, such as /],
    [[...withFiles, '--config-file=../a=a'], /^--config-file=\.\.\/a=a: .* a path within the dir/],
    [[...withFiles, '--config-file=a=b/c'], /^--config-file=a=b\/c: .* is no key of a Secret: /],
    [[...withFiles, '--config-file=a=b', '--config-file=a=c'], /^--config-file=a=c: this path was given before$/],
    [['synth', '--out='], /^--out=: it is empty: name a folder, or leave the flag out$/],
    [['synth', '--out', '--format=helm'], /^option '--out <dir>' argument missing\. See: kindred help synth$/],
    [['dev', '-f', '--once'], /^option '-f, --file <file>' argument missing\. See: kindred help dev$/],
    [['dev', '--pods', '--inspect'], /^--inspect is for an operator that is a process: /],
    [['dev', '--output=json'], /^--output=json is .*: it goes with --once$/],
    [['render'], /^missing required argument 'files'\. See: kindred help render$/],
    [['render', 'a', '-n', 'B'], /^--namespace=B: a namespace's name must be /],
    [['render', 'a', '-o', 'dot'], /Allowed choices are yaml, json, tree\. See: kindred help render$/],
    [['prepare', '--fast'], /--fast.* See: kindred help prepare/s],
  ])('%j is refused with what to do', (argv, message) => {
    expect(() => parseArguments(argv)).toThrow(UsageError);
    expect(() => parseArguments(argv)).toThrow(message);
    expect(() => parseArguments(argv)).not.toThrow(/\n/);
  });
});

describe('help', () => {
  test('says how the command is called, since nothing puts it on PATH, and what its exit codes are', () => {
    expect(printed('help')).toContain('npx kindred');
    expect(printed('help')).toMatch(/^Exit codes: 0 it is done, 1 it failed, 2 the command line is not valid, 130 /m);
  });

  test.each(commandNames())('there is some on %s', (command) => {
    expect(printed('help')).toMatch(new RegExp(`^  ${command} `, 'm'));
    expect(printed('help', command)).toContain('Usage: kindred');
  });

  test('names every option of start', () => {
    const options = ['once', 'timeout', 'file', 'no-samples', 'namespace', 'port', 'metrics-port', 'log-file', 'pods'];
    for (const option of options) expect(printed('help', 'dev')).toMatch(new RegExp(`--${option}\\b`));
  });

  test('no line is wider than a terminal', () => {
    const lines = commandNames().flatMap((command) => printed('help', command).split('\n'));
    expect(lines.filter((line) => line.length > 120)).toEqual([]);
  });
});

describe('the project', () => {
  test.each([
    [['--project=a', 'docs', '--check'], 'a', ['docs', '--check']],
    [['--project', 'a/b', 'run', '--project=c'], 'a/b', ['run', '--project=c']],
    [['docs'], process.cwd(), ['docs']],
  ])('%j', (argv, from, rest) => {
    expect(takeProject(argv)).toEqual({ from, rest });
  });

  test.each([[['--project=', 'docs']], [['--project']], [['--project', '--help']]])('%j names none', (argv) => {
    expect(() => takeProject(argv)).toThrow(/^--project=.*: name the folder of a project$/);
  });
});
