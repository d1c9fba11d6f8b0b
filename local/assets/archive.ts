import { createWriteStream } from 'node:fs';
import { spawn } from 'node:child_process';
import { pipeline } from 'node:stream/promises';
import { LocalControlPlaneError } from '../errors';

/**
 * Writes one member of a `.tar.gz` to a file, with the system's `tar`.
 *
 * @throws LocalControlPlaneError when tar is missing, fails, or the archive holds no such member
 */
export async function extractMember(archive: string, member: string, file: string): Promise<void> {
  const tar = spawn('tar', ['-xzOf', archive, member], { stdio: ['ignore', 'pipe', 'pipe'] });
  let stderr = '';
  tar.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<number | null>((resolve, reject) => {
    tar.on('error', reject);
    tar.on('close', resolve);
  });
  const [code] = await Promise.all([ended, pipeline(tar.stdout, createWriteStream(file, { flags: 'wx' }))]).catch(
    (error: unknown) => {
      throw new LocalControlPlaneError(`cannot unpack ${archive} with tar.`, { cause: error });
    },
  );
  if (code !== 0) throw new LocalControlPlaneError(`tar cannot unpack ${member} from ${archive}: ${stderr.trim()}`);
}
