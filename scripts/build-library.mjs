// Builds what other projects import, such as `kindred/constructs` and `kindred/operator`, as CommonJS with
// declarations.
//
//   node scripts/build-library.mjs [folder]     default: dist/library
//
// One build serves `require` and `import`: Node finds the named exports of tsc's output, so that a process
// never has two copies of a kind or of a construct's class. Tests in test/e2e/package check that.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = resolve(root, process.argv[2] ?? 'dist/library');
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

rmSync(out, { recursive: true, force: true });
execFileSync(process.execPath, [tsc, '--project', 'tsconfig.build.json', '--outDir', out], {
  cwd: root,
  stdio: 'inherit',
});
