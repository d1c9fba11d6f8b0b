import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { goTool } from './go-tools/build';
import { temporaryFolder } from './temporary-folder';

/** The versions of Helm that the chart is tested with. */
export const helmVersions = ['helm3', 'helm4'] as const;

export type HelmVersion = (typeof helmVersions)[number];

/** How a run of Helm ended. */
export interface HelmResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs Helm, with folders of its own. */
export function helm(version: HelmVersion, args: readonly string[], kubeconfig = '/dev/null'): HelmResult {
  const home = temporaryFolder('kindred-helm-');
  const folders = ['CACHE', 'CONFIG', 'DATA'].map((name) => [`HELM_${name}_HOME`, join(home, name)]);
  const env = { ...process.env, ...(Object.fromEntries(folders) as Record<string, string>), KUBECONFIG: kubeconfig };
  const { status, stdout, stderr } = spawnSync(goTool(version), args, { env, encoding: 'utf8', maxBuffer: 1e8 });
  return { code: status, stdout, stderr };
}

/** Runs Helm. @throws Error with what it says, if it fails */
export function helmOrThrow(version: HelmVersion, args: readonly string[], kubeconfig?: string): string {
  const { code, stdout, stderr } = helm(version, args, kubeconfig);
  if (code === 0) return stdout;
  throw new Error(`${version} ${args.join(' ')}: ${stderr}`);
}

/** The objects that Helm renders, in its order. */
export function helmTemplate(version: HelmVersion, args: readonly string[]): readonly KubeObject[] {
  const documents = parseAllDocuments(helmOrThrow(version, ['template', 'kindred', ...args]));
  return [...documents].flatMap((document) => (document.toJS() as KubeObject | null) ?? []);
}
