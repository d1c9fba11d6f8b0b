import path from 'node:path';

/** The programs and files that a control plane is made of. */
export type PartName =
  | 'etcd'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kwok'
  | 'kwok-stages'
  | 'kubectl'
  | 'kubelet'
  | 'kube-proxy'
  | 'pod';

/** The pinned versions; `local/parts/<module>/go.mod` pins the same ones, and a test compares the two. */
export const versions = { kubernetes: 'v1.36.3', etcd: 'v3.6.16', kwok: 'v0.8.0', pod: 'v1' } as const;

/** The hosts of releases. Tests use their own server. */
export interface DownloadHosts {
  /** Kubernetes binaries. @default https://dl.k8s.io */
  readonly kubernetes: string;
  /** Release assets of etcd and KWOK. @default https://github.com */
  readonly github: string;
  /** Digests of release assets, for projects that publish no checksum file. @default https://api.github.com */
  readonly githubApi: string;
}

export const officialHosts: DownloadHosts = {
  kubernetes: 'https://dl.k8s.io',
  github: 'https://github.com',
  githubApi: 'https://api.github.com',
};

/** The host system in Go's terms, which releases use too. */
export interface Platform {
  readonly os: string;
  readonly arch: string;
}

/** How to learn the sha256 of a download. */
export type Checksum =
  /** A file that contains only the digest. */
  | { readonly kind: 'file'; readonly url: string }
  /** A `sha256sum` listing: one line per file. */
  | { readonly kind: 'list'; readonly url: string; readonly entry: string }
  /** A GitHub release, as its API describes it: each asset with its digest. */
  | { readonly kind: 'release'; readonly url: string; readonly asset: string };

/** An official download of a part. */
export interface Download {
  readonly url: string;
  readonly checksum: Checksum;
  /** The path inside the downloaded `.tar.gz`, where the download is an archive. */
  readonly member?: string;
}

/** How to build a part on this machine, from a module under `local/parts`. */
export type Build =
  | { readonly kind: 'program'; readonly module: string; readonly package: string; readonly ldflags: string }
  /** Files of a Go module, joined into one YAML file. */
  | { readonly kind: 'files'; readonly module: string; readonly from: string; readonly files: readonly string[] };

/** One part: its name, and every way to get it. */
export interface Part {
  readonly name: PartName;
  readonly version: string;
  readonly fileName: string;
  readonly executable: boolean;
  /** The official download for a platform, or undefined when none is published for it. */
  download(platform: Platform, hosts: DownloadHosts): Download | undefined;
  readonly build: Build;
}

/** The platform of this process. */
export function hostPlatform(): Platform {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  return { os: process.platform === 'win32' ? 'windows' : process.platform, arch };
}

/** The version of Kubernetes is set by the linker; without these flags it reports v0.0.0. */
function kubernetesLdflags(): string {
  const [major = '', minor = ''] = versions.kubernetes.slice(1).split('.');
  const values = {
    gitVersion: versions.kubernetes,
    gitMajor: major,
    gitMinor: minor,
    gitTreeState: 'clean',
    gitCommit: 'unknown',
  };
  const packages = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'];
  const flags = packages.flatMap((name) => Object.entries(values).map(([key, value]) => `-X ${name}.${key}=${value}`));
  return ['-s -w', ...flags].join(' ');
}

/** Server programs are released for Linux only, kubectl for every desktop. */
function kubernetesPart(name: PartName, releasedFor: readonly string[]): Part {
  const version = versions.kubernetes;
  return {
    name,
    version,
    fileName: name,
    executable: true,
    download: ({ os, arch }, hosts) => {
      if (!releasedFor.includes(os)) return undefined;
      const url = `${hosts.kubernetes}/release/${version}/bin/${os}/${arch}/${name}`;
      return { url, checksum: { kind: 'file', url: `${url}.sha256` } };
    },
    build: {
      kind: 'program',
      module: 'kubernetes',
      package: `k8s.io/kubernetes/cmd/${name}`,
      ldflags: kubernetesLdflags(),
    },
  };
}

const etcd: Part = {
  name: 'etcd',
  version: versions.etcd,
  fileName: 'etcd',
  executable: true,
  download: ({ os, arch }, hosts) => {
    // Its macOS and Windows releases are zip files; for these systems etcd is built.
    if (os !== 'linux') return undefined;
    const folder = `etcd-${versions.etcd}-${os}-${arch}`;
    const release = `${hosts.github}/etcd-io/etcd/releases/download/${versions.etcd}`;
    return {
      url: `${release}/${folder}.tar.gz`,
      checksum: { kind: 'list', url: `${release}/SHA256SUMS`, entry: `${folder}.tar.gz` },
      member: path.posix.join(folder, 'etcd'),
    };
  },
  build: { kind: 'program', module: 'etcd', package: 'go.etcd.io/etcd/server/v3', ldflags: '-s -w' },
};

/** KWOK publishes no checksum files, but GitHub's API returns the digest of every asset. */
function kwokDownload(asset: string, hosts: DownloadHosts): Download {
  return {
    url: `${hosts.github}/kubernetes-sigs/kwok/releases/download/${versions.kwok}/${asset}`,
    checksum: {
      kind: 'release',
      url: `${hosts.githubApi}/repos/kubernetes-sigs/kwok/releases/tags/${versions.kwok}`,
      asset,
    },
  };
}

const kwok: Part = {
  name: 'kwok',
  version: versions.kwok,
  fileName: 'kwok',
  executable: true,
  download: ({ os, arch }, hosts) => kwokDownload(`kwok-${os}-${arch}`, hosts),
  build: { kind: 'program', module: 'kwok', package: 'sigs.k8s.io/kwok/cmd/kwok', ldflags: '-s -w' },
};

/** KWOK's rules for nodes and pods: ready at once, complete when a Job owns them, deleted at once. */
const kwokStages: Part = {
  name: 'kwok-stages',
  version: versions.kwok,
  fileName: 'stage-fast.yaml',
  executable: false,
  download: (_platform, hosts) => kwokDownload('stage-fast.yaml', hosts),
  build: {
    kind: 'files',
    module: 'kwok',
    from: 'sigs.k8s.io/kwok',
    files: [
      'kustomize/stage/node/fast/node-initialize.yaml',
      'kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml',
      'kustomize/stage/pod/fast/pod-ready.yaml',
      'kustomize/stage/pod/fast/pod-complete.yaml',
      'kustomize/stage/pod/fast/pod-delete.yaml',
    ],
  },
};

/**
 * A program of our own, for nodes that run containers. Its version is that of the sources in `local/parts/node`,
 * which a test compares.
 */
const pod: Part = {
  name: 'pod',
  version: versions.pod,
  fileName: 'pod',
  executable: true,
  download: () => undefined,
  build: { kind: 'program', module: 'node', package: '.', ldflags: '-s -w' },
};

/** Every part, by name. */
export const parts: Readonly<Record<PartName, Part>> = {
  etcd,
  'kube-apiserver': kubernetesPart('kube-apiserver', ['linux']),
  'kube-controller-manager': kubernetesPart('kube-controller-manager', ['linux']),
  'kube-scheduler': kubernetesPart('kube-scheduler', ['linux']),
  kwok,
  'kwok-stages': kwokStages,
  kubectl: kubernetesPart('kubectl', ['linux', 'darwin']),
  kubelet: kubernetesPart('kubelet', ['linux']),
  'kube-proxy': kubernetesPart('kube-proxy', ['linux']),
  pod,
};
