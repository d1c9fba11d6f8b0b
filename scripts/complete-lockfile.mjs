// Adds to package-lock.json the optional packages of other platforms that npm could not look up when it wrote
// the lockfile. npm leaves such packages out, and `npm ci` then rejects the lockfile. An entry without
// integrity is enough: npm skips packages of other platforms by `os` and `cpu` without fetching them.
//
//   node scripts/complete-lockfile.mjs [--check]
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const file = fileURLToPath(new URL('../package-lock.json', import.meta.url));
const systems = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const processors = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'];

const lock = JSON.parse(readFileSync(file, 'utf8'));
const added = [];
for (const [path, parent] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    if (findEntry(path, name) !== undefined) continue;
    const words = name.split(/[/-]/);
    const os = systems.find((system) => words.includes(system));
    const cpu = processors.find((processor) => words.includes(processor));
    // A package without a platform in its name is missing for another reason, and an entry needs an exact
    // version.
    if (os === undefined || cpu === undefined || !/^\d+\.\d+\.\d+$/.test(version)) continue;
    const libc = os !== 'linux' ? undefined : words.some((word) => word.startsWith('musl')) ? 'musl' : 'glibc';
    lock.packages[`node_modules/${name}`] = {
      version,
      cpu: [cpu],
      ...(parent.dev === true ? { dev: true } : {}),
      ...(libc === undefined ? {} : { libc: [libc] }),
      optional: true,
      os: [os],
    };
    added.push(name);
  }
}
if (added.length === 0) {
  console.log('package-lock.json is complete');
} else if (process.argv.includes('--check')) {
  console.error(`package-lock.json lacks ${added.join(', ')}; run: node scripts/complete-lockfile.mjs`);
  process.exitCode = 1;
} else {
  lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en')));
  writeFileSync(file, `${JSON.stringify(lock, undefined, 2)}\n`);
  console.log(`added ${added.join(', ')}`);
}

/** The entry that Node would resolve a name to from a package's folder. */
function findEntry(path, name) {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const entry = lock.packages[`${at === '' ? '' : `${at}/`}node_modules/${name}`];
    if (entry !== undefined || at === '') return entry;
  }
}
