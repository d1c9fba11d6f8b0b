import { Foo } from '../../../constructs/kinds';
import { parseArguments, usage } from '../../../operator/arguments';

describe('the command line of the webhook', () => {
  it('serves no conversions unless there is a certificate', () => {
    expect(parseArguments([], [Foo])).toHaveProperty('webhook', undefined);
    expect(parseArguments(['--webhook-cert-dir=/tls'], [Foo])).toMatchObject({
      webhook: { certDir: '/tls', port: 9443 },
    });
    expect(parseArguments(['--webhook-cert-dir=/tls', '--webhook-port=0'], [Foo])).toMatchObject({
      webhook: { port: 0 },
    });
  });

  it('refuses what cannot be', () => {
    expect(() => parseArguments(['--webhook-port=x'], [Foo])).toThrow('--webhook-port=x: it must be a whole number');
    expect(() => parseArguments(['--webhook-cert-dir='], [Foo])).toThrow('it must name a directory');
  });

  it('is in the help', () => {
    for (const name of ['--webhook-port', '--webhook-cert-dir']) expect(usage([Foo])).toContain(name);
  });
});
