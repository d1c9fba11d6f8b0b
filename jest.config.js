// Unit tests touch no cluster; e2e and faults run against the real API server of local/. A file named *.slow.test.ts belongs to the slow
// project of its folder, which `npm run test:all` adds.
const transform = {
  '^.+\\.(t|j)s$': [
    '@swc/jest',
    { jsc: { parser: { syntax: 'typescript' }, target: 'es2023' }, module: { type: 'commonjs' }, sourceMaps: 'inline' },
  ],
};
// Packages that ship ES modules only; Jest runs CommonJS, so they are transformed like our own code.
const esmOnly = ['@kubernetes/client-node', 'openid-client', 'oauth4webapi', 'jose'];
const common = {
  moduleNameMapper: { '^fast-check$': '<rootDir>/test/support/jest/fast-check.cjs' },
  testEnvironment: '<rootDir>/test/support/jest/environment.ts',
  transform,
  transformIgnorePatterns: [`/node_modules/(?!(${esmOnly.join('|')})/)`],
  modulePathIgnorePatterns: ['<rootDir>/dist/'],
};

// The operator takes credentials from client-node's KubeConfig and never calls its generated client, which its bundle leaves out too
// (cli/bundle/absent-modules.ts). Loading that client takes each test file more than a second.
const withoutGeneratedClient = {
  '^\\./gen/index\\.js$': '<rootDir>/node_modules/@kubernetes/client-node/dist/gen/configuration.js',
};
// No unit test serializes functions, as Pulumi does for dynamic providers, or runs the Pulumi CLI. For these Pulumi loads TypeScript and
// npm's own code: a thousand modules for each test file.
const withoutUnusedPulumi = {
  '^\\./(closure/serializeClosure|closure/codePaths|automation)$': '<rootDir>/node_modules/@pulumi/pulumi/version.js',
};

const unit = {
  setupFiles: ['<rootDir>/test/support/jest/omit-sdk-stack-traces.ts'],
  moduleNameMapper: { ...common.moduleNameMapper, ...withoutGeneratedClient, ...withoutUnusedPulumi },
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/(e2e|faults)/'],
};
const e2e = {
  globalSetup: '<rootDir>/test/support/jest/set-up-end-to-end.ts',
  globalTeardown: '<rootDir>/test/support/jest/tear-down-end-to-end.ts',
};
const projects = [
  ['unit', '<rootDir>/test/**', unit],
  ['faults', '<rootDir>/test/faults/**', {}],
  ['e2e', '<rootDir>/test/e2e/**', e2e],
];

/** @type {import('jest').Config} */
module.exports = {
  // A bound, not an expectation: on a machine that does other things too, a test of seconds takes tens of them.
  testTimeout: 120_000,
  // A worker keeps something of each file that it has run; after some 200 files of test:all it ran out of memory.
  workerIdleMemoryLimit: '1500MB',
  testSequencer: '<rootDir>/test/support/jest/sequencer.cjs',
  projects: projects.flatMap(([name, folder, more]) => [
    { ...common, ...more, displayName: name, testMatch: [`${folder}/!(*.slow).test.ts`] },
    { ...common, ...more, displayName: `${name}-slow`, testMatch: [`${folder}/*.slow.test.ts`] },
  ]),
};
