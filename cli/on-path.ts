import { accessSync, constants } from 'node:fs';
import path from 'node:path';

/** Whether PATH has a program of this name. */
export function onPath(program: string, env: NodeJS.ProcessEnv = process.env): boolean {
  return (env['PATH'] ?? '').split(path.delimiter).some((folder) => {
    try {
      accessSync(path.join(folder, program), constants.X_OK);
      return folder !== '';
    } catch {
      return false;
    }
  });
}
