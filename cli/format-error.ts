import { existsSync, readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { tmpdir } from 'node:os';
import { cacheFolder, LocalControlPlaneError } from '../local';
import { codeOf, isError } from '../local/assets/errors';
import { InvalidObjectError } from '../constructs/kube/errors';
import { InvalidPropsError } from '../constructs/operator';
import { ImageError } from '../image/oci';
import { ApiError, TransportError } from '../operator/client/errors';
import { KubeconfigError } from '../operator/client/kubeconfig';
import { CliError } from './errors';

/**
 * The text of an error for the user: its message if that was written for users, else the stack, for a bug
 * report.
 */
export function formatError(error: unknown): string {
  const code = codeOf(error);
  if (isWatchLimit(error))
    return `the sources cannot be watched: ${(error as Error).message}. Raise fs.inotify.max_user_watches with sysctl, and run it again.`;
  if (code === 'ENOSPC' || code === 'EDQUOT') return diskFullMessage(error);
  if (error instanceof ApiError) return `${error.request} was refused by the API server: ${error.message}`;
  if (isUserError(error)) return error.message;
  return `this should not happen, please report it: ${isError(error) ? sourceStack(error.stack ?? error.message) : String(error)}`;
}

/** A stack of the bundle with the lines of the sources, where the map is beside the bundle as in a checkout. */
function sourceStack(stack: string): string {
  const file = `${__filename}.map`;
  if (!existsSync(file)) return stack;
  const map = new SourceMap(JSON.parse(readFileSync(file, 'utf8')) as SourceMapPayload);
  return stack
    .replaceAll(`${__filename}:`, '\0')
    .replaceAll(/\0(\d+):(\d+)/g, (frame, line: string, column: string) => {
      const origin = map.findOrigin(Number(line), Number(column));
      return 'fileName' in origin
        ? `${origin.fileName}:${origin.lineNumber}:${origin.columnNumber}`
        : `${__filename}:${frame.slice(1)}`;
    });
}

function isUserError(error: unknown): error is Error {
  return [
    CliError,
    LocalControlPlaneError,
    KubeconfigError,
    InvalidObjectError,
    InvalidPropsError,
    TransportError,
    ImageError,
  ].some((type) => error instanceof type);
}

/** The kernel has a limit to how much is watched, which Node.js reports as a disk without space. */
function isWatchLimit(error: unknown): boolean {
  return codeOf(error) === 'ENOSPC' && (error as NodeJS.ErrnoException).syscall === 'watch';
}

function diskFullMessage(error: unknown): string {
  const why = isError(error) ? error.message.replace(/[.\s]*$/, '') : String(error);
  return (
    `the disk is full: ${why}. Free some space (downloaded and built parts lie in ${cacheFolder()}, ` +
    `what is running in ${tmpdir()}) and run it again.`
  );
}
