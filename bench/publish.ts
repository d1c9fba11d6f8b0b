import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { charts } from './charts';
import { machineKind } from './machine';
import { preamble, sections } from './report';
import type { Results } from './results';

const begin = '<!-- results: written by `npm run bench -- --publish`, not by hand -->';
const end = '<!-- end of results -->';

/**
 * Puts the results into the documentation: the pictures as files, the tables between the marks of its page.
 *
 * @param docs the folder of the page `benchmarks.md`
 * @throws Error when the page lacks the marks
 */
export async function publish(results: Results, docs: string): Promise<void> {
  const page = join(docs, 'benchmarks.md');
  const text = replaced(await readFile(page, 'utf8'), markdown(results), page);
  await mkdir(join(docs, 'benchmarks'), { recursive: true });
  for (const [name, picture] of charts(results)) await writeFile(join(docs, 'benchmarks', name), picture);
  await writeFile(page, text);
}

/** A page with new results between its marks. */
export function replaced(page: string, results: string, name: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${name}: put these two lines where the results go: ${begin} and ${end}`);
  return `${page.slice(0, from + begin.length)}\n\n${results}\n\n${page.slice(to)}`;
}

/** The results as Markdown: a table for each part. */
export function markdown(results: Results): string {
  const [, ...rest] = preamble(results);
  const head = [machineKind(results.machine), ...rest].map((line) => `- ${line}`).join('\n');
  const parts = sections(results).map(({ title, note, heading, rows }) => {
    const rule = heading.map((_, column) => (column === 0 ? '---' : '--:'));
    const lines = [heading, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
    return [`### ${capitalized(title)}\n`, ...(note === undefined ? [] : [`${note}\n`]), ...lines].join('\n');
  });
  return [head, ...parts].join('\n\n');
}

function capitalized(title: string): string {
  return title.charAt(0).toUpperCase() + title.slice(1);
}
