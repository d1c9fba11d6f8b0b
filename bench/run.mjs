// Bundles a benchmark with the operator's settings, and runs it: node bench/run.mjs <name> [arguments]
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { bundle } from './bundle.mjs';

const [name, ...args] = process.argv.slice(2);
const outfile = fileURLToPath(new URL(`../dist/bench/${name}.cjs`, import.meta.url));
await bundle(name, outfile);
process.exitCode = spawnSync(process.execPath, [outfile, ...args], { stdio: 'inherit' }).status ?? 1;
