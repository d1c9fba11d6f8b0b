import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { AnyKind } from '../constructs/kind/kind';
import { messageOf, undefinedIfMissing } from '../local/assets/errors';
import { CliError } from './errors';
import type { DocsArguments } from './docs-arguments';
import { printJson } from './flags';
import { GENERATED, kindIndex, kindPage, kindPageName } from './kind-page';

/**
 * `kindred docs`: writes the pages that are missing or out of date, and prints their names.
 *
 * @throws CliError when the folder cannot be read or written; with `check`, naming each page that is out of date
 */
export async function docs({ out, check, output }: DocsArguments, kinds: readonly AnyKind[]): Promise<void> {
  const pages = kindPages(kinds);
  const stale = await inFolder(out, () => stalePages(out, pages));
  const isText = output === 'text';
  const files = stale.map((name) => path.join(out, name));
  if (check && !isText) printJson({ outOfDate: files });
  if (check && stale.length > 0) {
    throw new CliError(`${files.join(', ')}: out of date. Run: kindred docs --out=${out}`);
  }
  await inFolder(out, () => refuseForeignFiles(out, stale));
  for (const name of stale) {
    const file = path.join(out, name);
    const text = pages.get(name);
    await inFolder(out, async () => {
      await mkdir(out, { recursive: true });
      await (text === undefined ? rm(file) : writeFile(file, text));
    });
    if (isText) process.stdout.write(`${file}${text === undefined ? ' is removed: its kind is gone' : ''}\n`);
  }
  if (isText || check) return;
  const isWritten = (_: string, i: number): boolean => pages.has(stale[i] ?? '');
  printJson({ written: files.filter(isWritten), removed: files.filter((file, i) => !isWritten(file, i)) });
}

/**
 * The pages of kinds by file name, the list of them too.
 *
 * @testonly
 */
export function kindPages(kinds: readonly AnyKind[]): ReadonlyMap<string, string> {
  return new Map([
    ['README.md', kindIndex(kinds)],
    ...kinds.map((kind) => [kindPageName(kind), kindPage(kind)] as const),
  ]);
}

/**
 * The pages that a folder lacks, or has otherwise, and those of kinds that are gone. Other files of the folder are not among them.
 *
 * @testonly
 */
export async function stalePages(out: string, pages: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const entries = (await readdir(out, { withFileTypes: true }).catch(undefinedIfMissing)) ?? [];
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.md')).map(({ name }) => name);
  const texts = await Promise.all(
    files.map(async (name) => [name, await readFile(path.join(out, name), 'utf8')] as const),
  );
  const present = new Map(texts);
  const gone = texts.filter(([name, text]) => !pages.has(name) && text.startsWith(GENERATED)).map(([name]) => name);
  return [...[...pages].filter(([name, text]) => present.get(name) !== text).map(([name]) => name), ...gone];
}

/** @throws CliError when a file that is to be written was written by somebody else */
async function refuseForeignFiles(out: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const text = await readFile(path.join(out, name), 'utf8').catch(undefinedIfMissing);
    if (text === undefined || text === '' || text.startsWith(GENERATED)) continue;
    throw new CliError(`--out=${out}: its ${name} was not written by kindred docs. Move it, or name another folder.`);
  }
}

async function inFolder<T>(out: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`--out=${out}: ${messageOf(error)}. Name a folder that you may write to.`, { cause: error });
  }
}
