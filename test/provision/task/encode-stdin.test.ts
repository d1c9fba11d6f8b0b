import * as fc from 'fast-check';
import { parse } from 'yaml';
import { externalSources, renderSource, encodeStdin } from '../../../provision/task/script-io';

test('one line a value: name, space, base64 of its UTF-8', () => {
  expect(
    encodeStdin([
      { name: 'token', value: 'sécret\n' },
      { name: 'a_1', value: '' },
    ]),
  ).toBe(`token ${Buffer.from('sécret\n').toString('base64')}\na_1 \n`);
});

test.each([['Token'], ['1a'], ['a b'], ['a\n'], ['a-b'], ['']])('refuses the name %j', (name) => {
  expect(() => encodeStdin([{ name, value: 'x' }])).toThrow('names match');
});

test('refuses a name that stands twice, without telling the value', () => {
  const twice = [
    { name: 'token', value: 'canary-1' },
    { name: 'token', value: 'canary-2' },
  ];
  expect(() => encodeStdin(twice)).toThrow(/^stdin value "token": names match \S+ and are unique$/);
});

const password = { secret: { namespace: 'ns', name: 'registry', key: 'password' } };
const token = { output: { task: 'a/install', name: 'token' } };

test('a template has texts as they are and values as JSON', () => {
  const source = {
    template: ['password: ', password, '\nuser: ', { text: 'it\'s "me"' }, '\nall: ', { template: ['x', token] }],
  };
  expect(externalSources(source)).toEqual([password, token]);
  const looked: unknown[] = [];
  const text = renderSource(source, (leaf) => {
    looked.push(leaf);
    return 'output' in leaf ? 't' : 'a"b\\c';
  });
  expect(looked).toEqual([password, token]);
  expect(text).toBe('password: "a\\"b\\\\c"\nuser: "it\'s \\"me\\""\nall: "x\\"t\\""');
});

test('plain sources are their values', () => {
  expect(renderSource(password, () => 'p')).toBe('p');
  expect(renderSource({ text: 't' }, () => 'never')).toBe('t');
  expect(externalSources({ file: 'rke/cluster.yml' })).toEqual([{ file: 'rke/cluster.yml' }]);
});

test('whatever a value is, YAML and JSON read it back', () => {
  const odd = fc.constantFrom(
    '\u0085',
    '\u2028',
    '\u2029',
    '\u007f',
    '\u0000',
    '\ufeff',
    '\n',
    '"',
    '\\',
    '😀',
    ': ',
    ' #',
  );
  const values = fc.array(fc.oneof(fc.string(), odd)).map((parts) => parts.join(''));
  fc.assert(
    fc.property(values, (value) => {
      const text = renderSource({ template: ['a: ', password] }, () => value);
      expect((parse(text) as { a: string }).a).toBe(value);
      expect(JSON.parse(text.slice(3))).toBe(value);
    }),
  );
});
