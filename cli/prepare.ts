import { cacheFolder, prepare as prepareParts } from '../local';
import { onPath } from './on-path';

/** `kindred prepare`: gets every part of the control plane, and kubectl where PATH has none. */
export async function prepare(): Promise<void> {
  const onProgress = (line: string): void => void process.stdout.write(`${line}\n`);
  const paths = await prepareParts({ components: 'full', kubectl: !onPath('kubectl'), onProgress });
  onProgress(`${Object.keys(paths).length} parts of the control plane are there, in ${cacheFolder()}`);
}
