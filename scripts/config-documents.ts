import { configKeys } from '../stacks/config/keys';

/** A file with a part that is generated from the keys of the stack's configuration. */
export interface ConfigDocument {
  /** Path below the root of the repository. */
  readonly path: string;
  /** Returns the text with that part generated again. @throws Error if the text has no place for it */
  readonly render: (text: string) => string;
}

/** All files with such a part. */
export const configDocuments: readonly ConfigDocument[] = [
  { path: 'Pulumi.yaml', render: (text) => replaced(text, /(?<=\nconfig:\n)[^]*$/, declarations()) },
  {
    path: 'docs/installing.md',
    render: (text) => replaced(text, /(?<=<!-- keys: npm run config -->\n\n)[^]*?(?=\n<!-- end of keys -->)/, table()),
  },
];

function replaced(text: string, part: RegExp, by: string): string {
  if (!part.test(text)) throw new Error(`there is no place for the keys of the configuration: ${part.source}`);
  return text.replace(part, () => by);
}

const sentence = (shape: string): string => `${shape.charAt(0).toUpperCase()}${shape.slice(1)}.`;

/**
 * `config` of Pulumi.yaml. It declares no types and no secrets: with them, Pulumi itself would reject a
 * value, only the first one and without a remedy, while the program reports all problems. Every key has a
 * default, if only an empty one, since Pulumi requires a value for a key without default.
 */
function declarations(): string {
  return Object.entries(configKeys)
    .map(([name, { shape, meaning, default: value = '' }]) => {
      const written = typeof value === 'string' && value !== '' ? value : yaml(value);
      return `  kindred:${name}:\n    description: ${yaml(`${sentence(shape)} ${meaning}`)}\n    default: ${written}\n`;
    })
    .join('');
}

function yaml(value: unknown): string {
  if (typeof value !== 'string' || value.includes("'")) return JSON.stringify(value);
  return `'${value}'`;
}

function table(): string {
  const rows = Object.entries(configKeys).map(([name, { shape, meaning, default: value = '' }]) => {
    const isEmpty = value === '' || (typeof value === 'object' && Object.keys(value).length === 0);
    return [
      `\`kindred:${name}\``,
      plain(sentence(shape).slice(0, -1)),
      isEmpty ? '' : `\`${yaml(value).replaceAll("'", '')}\``,
      plain(meaning),
    ];
  });
  const lines = [['Key', 'Value', 'Default', 'Meaning'], ['---', '---', '---', '---'], ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

/** A text with the characters escaped that Markdown would interpret. */
const plain = (text: string): string => text.replace(/[|<]/g, String.raw`\$&`);
