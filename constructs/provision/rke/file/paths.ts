/** What a path of a user's cluster.yml is resolved against. */
export interface PathOptions {
  /** The configured directory, as an absolute path without links in it. Absolute paths must lie in it. @default no absolute path is taken */
  readonly directory?: string;
  /** Folder of the cluster.yml, relative to the directory. Relative paths start there. @default the directory */
  readonly folder?: string;
}

/** A path relative to the configured directory, or why it is refused. */
export type ResolvedPath = { readonly path: string } | { readonly refused: string };

/** A part of a path that is neither hidden, nor `..`, nor an option of a command. */
const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;
const MAX_LENGTH = 1024;

/**
 * Where a path of a cluster.yml leads, by its text alone. Whoever opens the result must still see by `realpath` that no link leads out of the
 * directory, and open what `realpath` gave.
 */
export function resolvePath(path: string, { directory, folder = '' }: PathOptions): ResolvedPath {
  if (path.length > MAX_LENGTH) return { refused: `has more than ${MAX_LENGTH} characters` };
  if (path.startsWith('~'))
    return { refused: 'starts in a home directory; only files in the configured directory are read' };
  const absolute = path.startsWith('/');
  const root = segments(directory ?? '/');
  const stack = absolute ? [] : segments(folder);
  for (const segment of segments(path)) {
    if (segment !== '..') stack.push(segment);
    else if (stack.pop() === undefined) return LEAVES;
  }
  if (absolute && (directory === undefined || !root.every((segment, i) => stack[i] === segment))) return LEAVES;
  const relative = absolute ? stack.slice(root.length) : stack;
  if (relative.length === 0) return { refused: 'names no file' };
  if (!relative.every((segment) => SEGMENT.test(segment))) {
    return { refused: 'must be made of letters, digits, "_", "-", "." and "/", without hidden parts' };
  }
  const resolved = relative.join('/');
  // RKE slices the first two characters of it. Source: privateKeyPath of RKE 1.6 (hosts/tunnel.go).
  if (resolved.length < 2) return { refused: 'has one character, which RKE crashes on; give the file a longer name' };
  return { path: resolved };
}

const LEAVES: ResolvedPath = { refused: 'leaves the configured directory; only files in it are read' };

const segments = (path: string): string[] => path.split('/').filter((segment) => segment !== '' && segment !== '.');
