import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from '../../../local';

/** Programs of others, by the Go package that they are built from. go.mod beside this file pins their versions. */
const packages = {
  registry: 'github.com/distribution/distribution/v3/cmd/registry',
  crane: 'github.com/google/go-containerregistry/cmd/crane',
  helm3: 'helm.sh/helm/v3/cmd/helm',
  helm4: 'helm.sh/helm/v4/cmd/helm',
} as const;

type GoTool = keyof typeof packages;

/** Why programs cannot be built here; undefined: they can. */
export function goToolsUnavailable(): string | undefined {
  return spawnSync('go', ['version']).status === 0
    ? undefined
    : 'skipped: there is no go on PATH, with which the programs of others are built';
}

/** The path of a program, which is built by the first test that needs it: minutes, and kept in Kindred's cache folder. */
export function goTool(name: GoTool): string {
  const sums = createHash('sha256')
    .update(readFileSync(join(__dirname, 'go.sum')))
    .digest('hex')
    .slice(0, 16);
  const folder = join(cacheFolder(), 'test-tools', sums);
  const file = join(folder, name);
  if (existsSync(file)) return file;
  const env = { ...process.env, CGO_ENABLED: '0' };
  const draft = mkdtempSync(`${cacheFolder()}/test-tools-`);
  try {
    const built = spawnSync('go', ['build', '-trimpath', '-mod=readonly', '-o', join(draft, name), packages[name]], {
      ...{ cwd: __dirname, env, encoding: 'utf8' },
    });
    if (built.status !== 0) throw new Error(`go cannot build ${packages[name]}: ${built.stderr.slice(-2000)}`);
    mkdirSync(folder, { recursive: true });
    renameSync(join(draft, name), file);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return file;
}
