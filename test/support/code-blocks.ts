/** A fenced block of a Markdown text. */
export interface CodeBlock {
  /** For example `ts`. */
  readonly language: string;
  /** What follows the language: `file=website.ts`, `fails`. */
  readonly note: string;
  readonly text: string;
}

/** The fenced blocks of a Markdown text, in order. */
export function codeBlocks(markdown: string): readonly CodeBlock[] {
  return [...markdown.matchAll(/^```(\S*) ?(.*)\n([\s\S]*?)^```$/gm)].map(
    ([, language = '', note = '', text = '']) => ({
      language,
      note,
      text,
    }),
  );
}

/** The blocks that are files, by name. */
export function filesIn(blocks: readonly CodeBlock[]): Readonly<Record<string, string>> {
  const files = blocks.flatMap(({ note, text }) => {
    const [, name] = /^file=(\S+)$/.exec(note) ?? [];
    return name === undefined ? [] : [[name, text] as const];
  });
  return Object.fromEntries(files);
}

/** The commands of the shell blocks, in order; one that is expected to fail says so. */
export function commandsIn(
  blocks: readonly CodeBlock[],
): readonly { readonly line: string; readonly fails: boolean }[] {
  return blocks
    .filter(({ language }) => language === 'sh')
    .flatMap(({ note, text }) =>
      text
        .split('\n')
        .filter((line) => line.trim() !== '')
        .map((line) => ({ line, fails: note === 'fails' })),
    );
}

/** The words of a command; quotes keep a word together, and nothing else of a shell is understood. */
export function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}
