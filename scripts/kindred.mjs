// `node scripts/kindred.mjs COMMAND [OPTIONS]`: the command of this checkout. It is built when it is missing or older than
// one of its sources, and starts with the code that an earlier run has compiled.
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runCached } from './run-cached.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const inputs = `${root}dist/inputs.json`;

if (isStale()) {
  const build = [`${root}node_modules/tsx/dist/cli.mjs`, `${root}scripts/build.ts`];
  // It has printed what is wrong.
  if (spawnSync(process.execPath, build, { stdio: 'inherit' }).status !== 0) process.exit(1);
}
runCached(`${root}dist/cli.cjs`, `${root}dist/cli.code-cache`);

function isStale() {
  const built = modified(inputs);
  if (built === undefined) return true;
  // A new input need not be in the list: the file that imports it has changed, too.
  return JSON.parse(readFileSync(inputs, 'utf8')).some((path) => (modified(root + path) ?? Infinity) >= built);
}

function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}
