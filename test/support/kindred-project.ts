import { kinds, provisionerKinds } from '../../constructs/kinds';
import { provisioner } from '../../constructs/platform';
import { projectPlatform, type PlatformArguments, type ProjectPlatform } from '../../cli/project-platform';
import type { Project, ProjectOperator } from '../../cli/project';
import { license, version } from '../../package.json';
import { localSamples } from '../../provisioner/settings';

const common = { loaded: [], program: undefined, localSamples: undefined, image: {} };

/** Kindred's own project, with the sources that the tests import instead of the library that the command loads. */
export const kindredProject: Project = {
  ...{ root: '/kindred', name: 'kindred', version, license, pulumi: true, sources: [] },
  operators: [
    { ...common, name: 'operator', kinds, optional: false, settings: {} },
    {
      ...{
        ...common,
        name: 'provisioner',
        kinds: provisionerKinds,
        optional: true,
        settings: provisioner,
        localSamples,
      },
      image: { base: 'docker.io/library/node:22-bookworm', programs: ['sh', 'ssh'] },
    },
  ],
};

/** A project of one operator with these kinds. */
export function projectOf(name: string, operator: Partial<ProjectOperator>): Project {
  const operators = [{ ...common, name, kinds, optional: false, settings: {}, ...operator }];
  const more = { license: undefined, pulumi: false, sources: [] };
  return { root: `/${name}`, name, version: '1.2.3', ...more, operators };
}

/** A command line that says nothing of the platform. */
export const noChoices: PlatformArguments = {
  images: [],
  ...{ configSecret: undefined, configFiles: undefined, namespace: undefined, samplesNamespace: undefined },
  certManager: false,
};

/** The platform of Kindred's own project. */
export function kindredPlatform(args: Partial<PlatformArguments> = {}): ProjectPlatform {
  return projectPlatform(kindredProject, { ...noChoices, ...args });
}

/** With the provisioner too. */
export const testImages = ['kindred-operator:test', 'provisioner=kindred-provisioner:test'];
