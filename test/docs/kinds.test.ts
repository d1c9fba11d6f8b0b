import { join } from 'node:path';
import { kindPages, stalePages } from '../../cli/docs';
import { allKinds } from '../../constructs/kinds';

test('docs/kinds has the reference of each kind as it is now; npm run docs writes it', async () => {
  const pages = kindPages(allKinds);
  expect(pages.size).toBe(allKinds.length + 1);
  expect(await stalePages(join(__dirname, '..', '..', 'docs', 'kinds'), pages)).toEqual([]);
});
