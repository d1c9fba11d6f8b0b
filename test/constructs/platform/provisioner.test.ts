import { App } from 'cdk8s';
import { Cluster } from '../../../constructs/kinds';
import { InvalidPropsError } from '../../../constructs/operator';
import {
  Platform,
  provisioner,
  type PlatformOperator,
  type PlatformProps,
  type ProvisionerProps,
} from '../../../constructs/platform';
import { parseProvisionerArguments } from '../../../provisioner/arguments';

const props: ProvisionerProps = { image: 'registry.example.com/provisioner:1.0.0', kinds: [Cluster] };

/** What a platform with one operator says, one line each problem. */
function problemsOf(operator: PlatformOperator, further: Partial<PlatformProps> = {}): readonly string[] {
  try {
    new Platform(new App(), 'kindred', { operators: [operator], ...further });
  } catch (error) {
    if (error instanceof InvalidPropsError) return error.problems.map(({ path, message }) => `${path}: ${message}`);
    throw error;
  }
  return [];
}

describe('drainSeconds', () => {
  test.each([1, 3600, 86_340])('%d is taken by the platform and by the operator', (drainSeconds) => {
    const operator = provisioner({ ...props, drainSeconds });
    expect(problemsOf(operator)).toEqual([]);
    expect(operator.terminationGracePeriodSeconds).toBeGreaterThan(drainSeconds);
    expect(parseProvisionerArguments(operator.args ?? [], [Cluster])).toMatchObject({ drainSeconds });
  });

  test.each([0, -1, 1.5, 86_341, NaN])('%d is refused', (drainSeconds) => {
    expect(() => provisioner({ ...props, name: 'pro', drainSeconds })).toThrow(
      new InvalidPropsError('provisioner pro', [
        { path: 'drainSeconds', message: `${drainSeconds} must be an integer from 1 to 86340` },
      ]),
    );
  });
});

describe('the namespace', () => {
  test("must be the platform's, whichever of the two is not said", () => {
    const advice = (own: string, other: string): string =>
      `operators[0].args: it keeps its state, which may hold keys, in "${other}", and the platform's namespace is "${own}": ` +
      `leave the argument out (of a provisioner: write provisioner({ namespace: '${own}', ... })), or give the platform the namespace "${other}"`;
    expect(problemsOf(provisioner(props), { namespace: 'ops' })).toEqual([advice('ops', 'kindred-system')]);
    expect(problemsOf(provisioner({ ...props, namespace: 'ops' }))).toEqual([advice('kindred-system', 'ops')]);
    expect(problemsOf(provisioner({ ...props, namespace: 'ops' }), { namespace: 'ops' })).toEqual([]);
    expect(problemsOf(provisioner(props), { namespace: 'kindred-system' })).toEqual([]);
  });

  test('is the last one that the arguments name', () => {
    const elsewhere = provisioner({ ...props, args: ['--state-namespace=vault'] });
    expect(problemsOf(elsewhere)).toEqual([expect.stringContaining('in "vault"')]);
    expect(problemsOf(elsewhere, { namespace: 'vault' })).toEqual([]);
  });
});
