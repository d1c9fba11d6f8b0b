import { Foo, HelloApp } from '../../constructs/kinds';
import { UsageError, parseArguments, usage, type OperatorArguments } from '../../operator/arguments';

const known = [HelloApp, Foo];

function parsed(...argv: string[]): OperatorArguments {
  const result = parseArguments(argv, known);
  if (result === 'help') throw new Error('only help was asked for');
  return result;
}

describe('parseArguments', () => {
  it('runs every kind, alone, on port 8080 by default', () => {
    expect(parsed()).toMatchObject({ kinds: known, port: 8080, logLevel: 'info', concurrency: 32, auditSeconds: 300 });
    const { kubeconfig, context, lease, host } = parsed();
    expect([kubeconfig, context, lease, host]).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('takes what it is told', () => {
    const argv = [
      '--kubeconfig=/f',
      '--context=c',
      '--metrics-port=0',
      '--metrics-host=::1',
      '--log-level=debug',
      '--concurrency=1',
      '--audit-seconds=5',
    ];
    expect(parsed(...argv, '--kinds= foos.samplecontroller.k8s.io')).toMatchObject({
      kinds: [Foo],
      kubeconfig: '/f',
      context: 'c',
      port: 0,
      host: '::1',
      logLevel: 'debug',
      concurrency: 1,
      auditSeconds: 5,
    });
    expect(parsed('--kinds=foos.samplecontroller.k8s.io,helloapps.apps.anupam.com').kinds).toEqual([Foo, HelloApp]);
  });

  it('works in all namespaces, or in those named, each once', () => {
    expect(parsed().namespaces).toBeUndefined();
    expect(parsed('--namespaces=a, b,a').namespaces).toEqual(['a', 'b']);
    expect(() => parsed('--namespaces=a,B')).toThrow('--namespaces: "B" must be');
  });

  it('elects a leader only when told', () => {
    expect(parsed('--leader-elect').lease).toMatchObject({ name: 'kindred-operator' });
    const lease = parsed('--leader-elect', '--lease-name=l', '--lease-namespace=n').lease;
    expect(lease).toEqual({ name: 'l', namespace: 'n', preferred: undefined });
    expect(parsed('--leader-elect', '--lease-preferred=dev').lease).toMatchObject({ preferred: 'dev' });
  });

  it.each<[string, string]>([
    [
      '--kinds=bars.example.com',
      '--kinds: "bars.example.com" is not known; the kinds are helloapps.apps.anupam.com, foos.samplecontroller.k8s.io',
    ],
    ['--kinds=', '--kinds: "" is not known'],
    ['--lease-name=l', '--lease-name, --lease-namespace and --lease-preferred go with --leader-elect'],
    ['--lease-preferred=dev', '--lease-name, --lease-namespace and --lease-preferred go with --leader-elect'],
    ['--metrics-port=1e3', '--metrics-port=1e3: it must be a whole number from 0 to 65535'],
    ['--log-level=loud', '--log-level=loud: it may be one of fatal, error, warn, info, debug, trace, silent'],
    ['--metrics-port=65536', '--metrics-port=65536: it must be a whole number from 0 to 65535'],
    ['--metrics-port=', '--metrics-port=: it must be a whole number'],
    ['--metrics-port=1.5', '--metrics-port=1.5: it must be a whole number'],
    ['--metrics-port=-1', '--metrics-port=-1: it must be a whole number'],
    ['--concurrency=0', '--concurrency=0: it must be a whole number from 1 to 1000'],
    ['--audit-seconds=0', '--audit-seconds=0: it must be a whole number from 1 to 86400'],
    ['--concurrency=many', '--concurrency=many: it must be a whole number'],
    ['--nonsense', "'--nonsense'"],
    ['positional', "'positional'"],
    ['--leader-elect=no', '--leader-elect'],
  ])('%s is refused with what it may be', (argument, message) => {
    expect(() => parseArguments([argument], known)).toThrow(UsageError);
    expect(() => parseArguments([argument], known)).toThrow(message);
  });

  it('answers --help, which names every option and kind', () => {
    expect(parseArguments(['--help', '--log-level=info'], known)).toBe('help');
    const text = usage(known);
    for (const name of [
      'kinds',
      'kubeconfig',
      'context',
      'namespaces',
      'leader-elect',
      'lease-name',
      'lease-namespace',
      'metrics-port',
      'metrics-host',
      'log-level',
      'concurrency',
      'audit-seconds',
    ]) {
      expect(text).toContain(`--${name}`);
    }
    for (const { crdName } of known) expect(text).toContain(crdName);
  });
});
