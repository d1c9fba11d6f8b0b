import fc from 'fast-check';
import {
  describeNameRule,
  maxNameLength,
  namePattern,
  nameProblem,
  type NameFormat,
} from '../../../constructs/kube/names';

const formats: readonly NameFormat[] = ['dns-label', 'dns-1035-label', 'dns-subdomain'];

describe('names', () => {
  it.each<[NameFormat, string, boolean]>([
    ['dns-label', 'a', true],
    ['dns-label', '1a-b2', true],
    ['dns-label', 'a'.repeat(63), true],
    ['dns-label', 'a'.repeat(64), false],
    ['dns-label', '', false],
    ['dns-label', '-a', false],
    ['dns-label', 'a-', false],
    ['dns-label', 'A', false],
    ['dns-label', 'a.b', false],
    ['dns-label', 'a\n', false],
    ['dns-1035-label', 'a1', true],
    ['dns-1035-label', '1a', false],
    ['dns-subdomain', 'a.b-c.1', true],
    ['dns-subdomain', `${'a'.repeat(126)}.${'b'.repeat(126)}`, true],
    ['dns-subdomain', 'a'.repeat(254), false],
    ['dns-subdomain', 'a..b', false],
    ['dns-subdomain', 'a.-b', false],
    ['dns-subdomain', '.a', false],
    ['dns-subdomain', 'a.', false],
    ['dns-subdomain', 'a_b', false],
  ])('%s: %j is %s', (format, name, kept) => {
    expect(nameProblem(name, { format }) === undefined).toBe(kept);
  });

  it('says what a name must be', () => {
    expect(nameProblem('A', { format: 'dns-label', maxLength: 5 })).toBe(
      '"A" must be at most 5 characters: lower-case letters, digits and "-", starting and ending with a letter or digit',
    );
    expect(describeNameRule({ format: 'dns-1035-label' })).toContain('starting with a letter');
  });

  it('takes a length of its own, of either format', () => {
    expect(nameProblem('a'.repeat(53), { format: 'dns-subdomain', maxLength: 52 })).toBeDefined();
    expect(formats.map((format) => maxNameLength({ format }))).toEqual([63, 63, 253]);
  });

  it('agrees with its pattern, which is anchored', () => {
    fc.assert(
      fc.property(fc.constantFrom(...formats), fc.stringMatching(/^[aB0.-]{0,8}$/), (format, name) => {
        expect(nameProblem(name, { format }) === undefined).toBe(new RegExp(namePattern(format)).test(name));
        expect(nameProblem(`${name}\n`, { format })).toBeDefined();
      }),
      { numRuns: 500 },
    );
  });
});
