import type { Problem } from '../../../constructs/kube/errors';

/** A construct tree cannot be turned into Pulumi resources. Nothing of it was registered. */
export class BridgeError extends Error {
  override readonly name = 'BridgeError';
  constructor(
    /** Name of the tree: of its ConstructResources. */
    readonly tree: string,
    /** All that is wrong; a path is that of a construct, followed by `#` and a path within its object where one is meant. */
    readonly problems: readonly Problem[],
    options?: { readonly cause?: unknown },
  ) {
    super(
      [`${tree} cannot be turned into Pulumi resources:`, ...problems.map((problem) => `  ${lineOf(problem)}`)].join(
        '\n',
      ),
      options,
    );
  }
}

function lineOf({ path, message }: Problem): string {
  return path === '' ? message : `${path}: ${message}`;
}

/** What an error says, whatever realm it comes from. */
export function messageOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'message' in error) return String(error.message);
  return String(error);
}
