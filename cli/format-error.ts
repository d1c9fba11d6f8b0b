import { tmpdir } from 'node:os';
import { cacheFolder, LocalControlPlaneError } from '../local';
import { codeOf, isError } from '../local/assets/errors';
import { InvalidObjectError } from '../constructs/kube/errors';
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
  if (code === 'ENOSPC' || code === 'EDQUOT') return diskFullMessage(error);
  if (error instanceof ApiError) return `${error.request} was refused by the API server: ${error.message}`;
  if (isUserError(error)) return error.message;
  return `this should not happen, please report it: ${isError(error) ? (error.stack ?? error.message) : String(error)}`;
}

function isUserError(error: unknown): error is Error {
  return [CliError, LocalControlPlaneError, KubeconfigError, InvalidObjectError, TransportError, ImageError].some(
    (type) => error instanceof type,
  );
}

function diskFullMessage(error: unknown): string {
  const why = isError(error) ? error.message.replace(/[.\s]*$/, '') : String(error);
  return (
    `the disk is full: ${why}. Free some space (downloaded and built parts lie in ${cacheFolder()}, ` +
    `what is running in ${tmpdir()}) and run it again.`
  );
}
