import type * as command from '@pulumi/command';
import * as pulumi from '@pulumi/pulumi';

const NAME = '@pulumi/command';

/**
 * The package that the steps on machines are resources of. It is loaded with the first cluster, since programs without one need not have it.
 *
 * @throws pulumi.RunError, which Pulumi shows without a stack trace, where it is not installed
 */
export function commandPackage(): typeof command {
  try {
    // oxlint-disable-next-line typescript/no-require-imports -- an import would load it for everybody
    return require('@pulumi/command') as typeof command;
  } catch (error) {
    const { code, message = '' } = error as { readonly code?: unknown; readonly message?: string };
    if (code !== 'MODULE_NOT_FOUND' || !message.startsWith(`Cannot find module '${NAME}'`)) throw error;
    throw new pulumi.RunError(
      `a RemoteCluster needs the package ${NAME}, which is not installed: its steps on machines are resources of that package. ` +
        `Run: npm install ${NAME}`,
    );
  }
}
