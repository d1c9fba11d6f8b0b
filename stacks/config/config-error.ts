/** One thing that is wrong with the configuration. */
export interface ConfigProblem {
  /** The key, without its namespace. */
  readonly key: string;
  /** What is wrong. Quotes no secret. */
  readonly message: string;
  /** The command that mends it. */
  readonly remedy: string;
}

/** The command that sets what stands at a path of the configuration. */
export function valueRemedy(path: string): string {
  return `pulumi config set --path 'kindred:${path}' VALUE`;
}

/** The command that sets a secret at a path of the configuration. Without a value it asks for one, so that none stands in a shell's history. */
export function secretRemedy(path: string): string {
  return `pulumi config set --secret --path 'kindred:${path}'`;
}

/** The command that takes away what stands at a path of the configuration. */
export function removalRemedy(path: string): string {
  return `pulumi config rm --path 'kindred:${path}'`;
}

/** The configuration of a stack is not valid: everything that is wrong with it, and what to do. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly problems: readonly ConfigProblem[]) {
    super(
      [
        'the configuration of this stack is not valid:',
        ...problems.map(({ key, message, remedy }) => `  kindred:${key}: ${message}\n    try: ${remedy}`),
      ].join('\n'),
    );
  }
}
