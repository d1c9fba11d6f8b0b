import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

/** A module that the bundle of an operator leaves out, because the code that imports it never runs. */
export interface AbsentModule {
  /** The specifier of the import. */
  readonly module: string;
  /** Matches the path of the importing file: the module is left out for that importer only. */
  readonly importer: RegExp;
  /** The names that the importer uses. A name that is missing here fails the build. */
  readonly exports: readonly string[];
  /** The package of that importer. */
  readonly of: string;
  /** Why the code never runs, for the error that is thrown if it does. */
  readonly why: string;
}

/**
 * The modules that are left out.
 *
 * @param kindred - Kindred's folder, from which zod is found
 */
export const absentModules = (kindred: string): readonly AbsentModule[] => [
  {
    module: './gen/index.js',
    importer: /\/@kubernetes\/client-node\/dist\/config\.js$/,
    of: '@kubernetes/client-node',
    exports: ['createConfiguration', 'ServerConfiguration'],
    why: "the operator has its own API client (operator/client); of client-node's only KubeConfig is used",
  },
  {
    module: 'node-fetch',
    importer: /\/@kubernetes\/client-node\/dist\/config\.js$/,
    of: '@kubernetes/client-node',
    exports: ['Headers'],
    why: 'the operator takes credentials from applyToHTTPSOptions, not from applyToFetchOptions',
  },
  {
    module: 'socks-proxy-agent',
    importer: /\/@kubernetes\/client-node\/dist\/config\.js$/,
    of: '@kubernetes/client-node',
    exports: ['SocksProxyAgent'],
    why: 'a kubeconfig with a proxy-url is refused (operator/client/kubeconfig.ts)',
  },
  {
    module: 'hpagent',
    importer: /\/@kubernetes\/client-node\/dist\/config\.js$/,
    of: '@kubernetes/client-node',
    exports: ['HttpProxyAgent', 'HttpsProxyAgent'],
    why: 'a kubeconfig with a proxy-url is refused (operator/client/kubeconfig.ts)',
  },
  {
    module: 'jsonpath-plus',
    importer: /\/@kubernetes\/client-node\/dist\/(azure|gcp)_auth\.js$/,
    of: '@kubernetes/client-node',
    exports: ['JSONPath'],
    why: 'the auth providers "azure" and "gcp" were removed from Kubernetes 1.26; use their exec plugins (kubelogin, gke-gcloud-auth-plugin)',
  },
  {
    module: '../web/fetch/body.js',
    importer: /\/undici\/lib\/dispatcher\/client-h[12]\.js$/,
    of: 'undici',
    exports: ['extractBody'],
    why: 'request bodies are strings and buffers; send neither streams nor forms, or take this entry out',
  },
  {
    module: '@opentelemetry/api',
    importer: /\/prom-client\/lib\/metrics\/processCpuTotal\.js$/,
    of: 'prom-client',
    exports: ['trace', 'context'],
    why: 'metrics carry no exemplars (collectDefaultMetrics is called without enableExemplars)',
  },
  {
    module: '../locales/index.js',
    importer: /\/zod\/v4\/(core\/index|classic\/external)\.js$/,
    of: 'zod',
    exports: zodLocales(kindred),
    why: "messages are in English, zod's default",
  },
  {
    module: 'yaml',
    importer: /\/cdk8s\/lib\/yaml\.js$/,
    of: 'cdk8s',
    exports: ['stringify', 'parseAllDocuments'],
    why: 'children are rendered as objects; cdk8s writes or reads no YAML in the operator',
  },
];

function zodLocales(kindred: string): readonly string[] {
  const zod = path.dirname(createRequire(path.join(kindred, 'package.json')).resolve('zod/package.json'));
  const index = readFileSync(path.join(zod, 'v4/locales/index.js'), 'utf8');
  return [...index.matchAll(/export \{ default as (\w+) \}/g)].map(([, name = '']) => name);
}
