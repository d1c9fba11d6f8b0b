import { z } from 'zod';
import { cel } from '../../core/cel';
import { withRule } from '../../core/fields';
import { absolutePath, endpointUrl } from './cluster-fields';

/** Where the installation script of RKE2 or K3s comes from. */
export const installer = withRule(
  z.object({
    url: endpointUrl()
      .optional()
      .describe("Address of the script. Default: the distribution's own, https://get.rke2.io or https://get.k3s.io."),
    path: absolutePath().optional().describe('The script as a file that stands on every machine.'),
    sha256: z
      .string()
      .max(64)
      .regex(/^[0-9a-f]{64}$/, { error: 'must be a SHA-256 in hex' })
      .optional()
      .describe('SHA-256 of the script, in hex: it is run only if it has it. Default: not checked.'),
    artifacts: absolutePath()
      .optional()
      .describe("Folder on every machine with the distribution's own files, for machines without internet."),
  }),
  cel('!has(self.url) || !has(self.path)', 'give one of url and path'),
  ({ url, path }) => url === undefined || path === undefined,
);
