import type { ObjectKeyRef } from '../../kind/reads';
import type { Node } from '../cluster-input';
import type { Source, StdinValue } from '../task';
import { s3CaFile } from './config';
import { factsOf, type ServerInput } from './facts';
import { isServer, layoutOf } from './layout';

type Parts = readonly (string | Source)[];

/** A file with secrets that a node's installation writes. */
export interface SecretFile {
  /** Path on the machine. */
  readonly path: string;
  readonly value: StdinValue;
}

/** The join token: made on the first server. */
export function tokenValue(input: ServerInput): StdinValue {
  return { name: 'token', from: { output: { task: `${layoutOf(input).first.address}/token`, name: 'token' } } };
}

/** The files with secrets of a node. Their text comes in on stdin, whole. */
export function secretFiles(input: ServerInput, node: Node): readonly SecretFile[] {
  const { configFolder } = factsOf(input);
  const { registries = [], etcdSnapshots } = input.options;
  const file = (path: string, name: string, from: Source): SecretFile => ({ path, value: { name, from } });
  const files = [file(`${configFolder}/config.yaml.d/50-kindred.yaml`, 'secret_config', secretConfig(input, node))];
  const s3Ca = etcdSnapshots?.s3?.caSecretRef;
  if (isServer(node) && s3Ca !== undefined) files.push(file(s3CaFile(configFolder), 's3_ca', { secret: s3Ca }));
  const template = registriesParts(input);
  if (template.length > 0) files.push(file(`${configFolder}/registries.yaml`, 'registries', { template }));
  registries.forEach(({ caSecretRef }, i) => {
    if (caSecretRef === undefined) return;
    files.push(file(registryCaFile(configFolder, i), `registry_ca_${i}`, { secret: caSecretRef }));
  });
  return files;
}

const registryCaFile = (folder: string, i: number): string => `${folder}/kindred-registry-ca-${i}.pem`;

const keyOf = (ref: { readonly namespace: string; readonly name: string }, key: string): Source => {
  const secret: ObjectKeyRef = { ...ref, key };
  return { secret };
};

/** What RKE2 and K3s read besides config.yaml: the same format, only secrets. */
function secretConfig(input: ServerInput, node: Node): Source {
  const parts: (string | Source)[] = ['token: ', tokenValue(input).from, '\n'];
  const credentials = input.options.etcdSnapshots?.s3?.credentialsSecretRef;
  if (isServer(node) && credentials !== undefined) {
    parts.push('etcd-s3-access-key: ', keyOf(credentials, 'accessKey'), '\n');
    parts.push('etcd-s3-secret-key: ', keyOf(credentials, 'secretKey'), '\n');
  }
  const endpoint = input.distribution === 'k3s' ? input.options.datastore?.endpointSecretRef : undefined;
  if (isServer(node) && endpoint !== undefined) parts.push('datastore-endpoint: ', { secret: endpoint }, '\n');
  return { template: parts };
}

/** containerd's registries as RKE2 and K3s read them: mirrors, and credentials and certificates, by host. */
function registriesParts(input: ServerInput): Parts {
  const { configFolder } = factsOf(input);
  const registries = input.options.registries ?? [];
  const mirrors = registries.filter(({ endpoints = [] }) => endpoints.length > 0);
  const configs = registries.flatMap(({ host, credentialsSecretRef: credentials, caSecretRef }, i): Parts[] => {
    if (credentials === undefined && caSecretRef === undefined) return [];
    const auth: Parts =
      credentials === undefined
        ? []
        : [
            ...['    auth:\n      username: ', keyOf(credentials, 'username')],
            ...['\n      password: ', keyOf(credentials, 'password'), '\n'],
          ];
    const ca = JSON.stringify(registryCaFile(configFolder, i));
    return [
      [
        `  ${JSON.stringify(host)}:\n`,
        ...auth,
        ...(caSecretRef === undefined ? [] : [`    tls:\n      ca_file: ${ca}\n`]),
      ],
    ];
  });
  return [
    ...(mirrors.length === 0 ? [] : ['mirrors:\n']),
    ...mirrors.map(({ host, endpoints }) => `  ${JSON.stringify(host)}: ${JSON.stringify({ endpoint: endpoints })}\n`),
    ...(configs.length === 0 ? [] : ['configs:\n', ...configs.flat()]),
  ];
}
