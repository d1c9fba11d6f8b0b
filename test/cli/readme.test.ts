import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArguments } from '../../cli/arguments';
import { parseObjects } from '../../cli/objects';
import { renderChildren } from '../../constructs/kind/render';
import { kinds } from '../../constructs/kinds';
import { scripts } from '../../package.json';

const root = join(__dirname, '..', '..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');

/** The contents of the code blocks of a language. */
function blocks(language: string): readonly string[] {
  // All blocks, each from its opening to its closing fence, since both may look alike.
  return [...readme.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].flatMap(([, found, text]) =>
    found === language ? [text ?? ''] : [],
  );
}

const commands = blocks('sh').flatMap((block) => block.split('\n'));

describe('the README', () => {
  test('shows one valid object of every kind', () => {
    const objects = blocks('yaml').flatMap((block) => parseObjects(block, 'README.md'));
    expect(objects.map(({ object }) => object.kind)).toEqual(kinds.map(({ kind }) => kind));
    for (const { object } of objects) {
      const kind = kinds.find(
        (candidate) => candidate.apiVersion === object.apiVersion && candidate.kind === object.kind,
      );
      const placed = { ...object, metadata: { ...object.metadata, namespace: 'default', uid: 'u' } };
      expect(renderChildren(kind!, placed).length).toBeGreaterThan(0);
    }
  });

  test('names every kind with its group and version', () => {
    for (const { kind, apiVersion } of kinds) expect(readme).toContain(`| ${kind} \`${apiVersion}\` |`);
  });

  test.each(commands.flatMap((line) => [...line.matchAll(/npm (start|test|run \w+)/g)].map(([, name]) => name ?? '')))(
    'npm %s is a script',
    (name) => expect(Object.keys(scripts)).toContain(name.replace('run ', '')),
  );

  test.each(
    commands.flatMap((line) => {
      const given = /^(?:npm start --|npx kindred) ([^#&]*?)\s*(?:#|&|$)/.exec(line)?.[1];
      if (given === undefined) return [];
      const named = given.replace('IMAGE', 'registry.example.com/team/sites:1');
      return [line.startsWith('npm') ? `dev ${named}` : named];
    }),
  )('kindred %s is understood', (line) => expect(() => parseArguments(line.split(' '))).not.toThrow());

  test.each([...readme.matchAll(/\]\((?!http)([^)#]+)\)/g)].map(([, path]) => path ?? ''))('%s exists', (path) => {
    expect(existsSync(join(root, path))).toBe(true);
  });

  test.each(blocks('').flatMap((block) => [...block.matchAll(/^(\w+\/) {2}/gm)].map(([, path]) => path ?? '')))(
    'the layout names %s, which exists',
    (path) => expect(existsSync(join(root, path))).toBe(true),
  );
});
