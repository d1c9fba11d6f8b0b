import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SourceWatcher } from '../../cli/source-watcher';
import { temporaryFolder } from '../support/temporary-folder';

let folder: string;
let watcher: SourceWatcher;
let seen: number;

beforeEach(() => {
  folder = temporaryFolder('kindred-sources-');
  for (const name of ['a.ts', 'lib/b.ts']) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), '');
  }
  watcher = new SourceWatcher();
  watcher.add([join(folder, 'a.ts')]);
  seen = 0;
  void (async () => {
    for (;;) {
      await watcher.next();
      seen += 1;
    }
  })();
});
afterEach(() => watcher.close());

/** Waits until the changes of a moment have been told. */
const told = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 150));

test.each<readonly [string, () => void]>([
  ['written', () => writeFileSync(join(folder, 'a.ts'), 'new')],
  [
    'replaced, as editors do',
    () => {
      writeFileSync(join(folder, 'a.ts~'), 'new');
      renameSync(join(folder, 'a.ts~'), join(folder, 'a.ts'));
    },
  ],
  ['made beside the others', () => writeFileSync(join(folder, 'c.json'), '{}')],
])('a file that is %s is one change', async (_, change) => {
  await told();
  change();
  await told();
  expect(seen).toBe(1);
  change();
  await told();
  expect(seen).toBe(2);
});

test.each(['a.test.ts', 'a.spec.ts', '.a.ts.swp', 'notes.md', 'a.ts~'])('%s is no source', async (name) => {
  await told();
  writeFileSync(join(folder, name), 'x');
  await told();
  expect(seen).toBe(0);
});

test('folders are watched from when they are named', async () => {
  writeFileSync(join(folder, 'lib/b.ts'), '1');
  await told();
  expect(seen).toBe(0);
  watcher.add([join(folder, 'lib/b.ts'), join(folder, 'a.ts')]);
  await told();
  writeFileSync(join(folder, 'lib/b.ts'), '2');
  await told();
  expect(seen).toBe(1);
});

test('a folder that is removed and made again is watched again', async () => {
  const file = join(folder, 'lib/b.ts');
  watcher.add([file]);
  rmSync(join(folder, 'lib'), { recursive: true });
  await told();
  mkdirSync(join(folder, 'lib'));
  writeFileSync(file, 'new');
  await told();
  expect(seen).toBeGreaterThan(0);
  // As each reload does.
  watcher.add([file]);
  seen = 0;
  writeFileSync(file, 'newer');
  await told();
  expect(seen).toBe(1);
});
