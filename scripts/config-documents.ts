import { configKeys } from '../stacks/config/keys';

/** The file with its part that is generated from the keys of the stack's configuration, and what that part was made of. */
export interface ConfigDocument {
  /** Path below the repository. */
  readonly path: string;
  /** The text with the part made anew. @throws Error when the text has no place for it */
  readonly render: (text: string) => string;
}

const sentence = (shape: string): string => `${shape.charAt(0).toUpperCase()}${shape.slice(1)}.`;

/** Everything that is generated from the keys. */
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

/**
 * `config` of Pulumi.yaml. It declares no types and no secrets: Pulumi would refuse a value by them itself, the first one only and without saying what to
 * do, where the program names all that is wrong. A default is empty where nothing is chosen, since Pulumi asks for a key without one.
 */
function declarations(): string {
  return Object.entries(configKeys)
    .map(([name, { shape, meaning, default: value }]) => {
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
  const rows = Object.entries(configKeys).map(([name, { shape, meaning, default: value }]) => {
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

/** A text that Markdown takes as it is. */
const plain = (text: string): string => text.replace(/[|<]/g, String.raw`\$&`);
