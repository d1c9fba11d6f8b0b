import { defaultBases } from './build-arguments';
import { UsageError } from './errors';

const overview = `Kindred: Kubernetes kinds, defined once.

  kindred start     a Kubernetes control plane on this machine with the platform, the operator and the samples
  kindred synth     write the platform's manifests as YAML, or as a Helm chart
  kindred build     make the operator's image, without a container engine
  kindred run       run the operator out of cluster, against the cluster of a kubeconfig
  kindred prepare   download or build the parts of the control plane, so that a later start takes seconds
  kindred help      this text, or that of one command: kindred help start

In a checkout, kindred is: node dist/cli.cjs
`;

const topics: Readonly<Record<string, string>> = {
  start: `kindred start [options]

Starts a control plane of real parts on 127.0.0.1, installs the platform, runs the operator under the platform's own
ServiceAccount, applies the samples, and shows them until Ctrl-C.

  --once               end as soon as every object is Ready: exit code 0; or 1 with the reasons
  --timeout=SECONDS    how long the objects may take to become Ready, not counting the parts (default: 180)
  -f, --file=FILE      apply these objects too; may be repeated
  --no-samples         apply only the objects of --file
  -n, --namespace=NAME namespace of the samples and of objects that name none (default: kindred-samples)
  --port=PORT          the API server's port (default: a free one)
  --metrics-port=PORT  of the operator's /metrics, /healthz and /readyz (default: a free one)
  --log-file=FILE      where the operator logs (default: in the data folder, which goes at the end)
  --log-level=LEVEL    error, warn, info, debug, trace (default: info)
  --installer=WHICH    pulumi: by the Pulumi stack; apply: by server-side apply; auto: by Pulumi where there is one that
                       works, on PATH or as npm's package (default: auto)
  --pods               run containers: the operator as its Deployment, and in every other pod a small HTTP server in
                       place of its images, since none can be pulled. Needs Linux, root, containerd, runc, CNI plugins
  --provisioner        run the provisioner too, for Cluster and Kubeconfig. A Kubeconfig of this control plane shows it
                       at work; a Cluster needs machines that this one reaches by SSH, and, of rke, that program on PATH
`,
  synth: `kindred synth [options]

Writes 1-crds.yaml, 2-platform.yaml and 3-samples.yaml, in the order in which kubectl apply takes them; and
argo-cd.yaml, for kubectl apply --server-side, with which Argo CD understands the kinds' health.

  --format=FORMAT           yaml, or helm: the platform as a Helm chart, without samples (default: yaml)
  --out=DIR                 (default: dist/manifests, or dist/chart)
  --image=IMAGE             the operator's image
  --provisioner-image=IMAGE install the provisioner too, of this image (default: only the CRDs of its kinds)
  --provisioner-config-secret=NAME
                            Secret in the operator's namespace with the files that configPath of a Cluster may name
                            (default: none)
  --provisioner-config-file=PATH=KEY
                            one of these files and its key, may be given more than once (default: one for each key)
  --namespace=NAME          of the operator (default: kindred-system)
  --samples-namespace=NAME  (default: kindred-samples)
`,
  build: `kindred build [options]

Makes an image of the operator: its bundle on a base that has Node.js. No container engine is needed. The same bundle
and base give the same digest. Prints the digest, or the name with the digest of what was pushed. Uses the credentials
of docker login where a registry asks for them.

  --push=REF           push it, such as registry.example.com/team/kindred-operator:0.1.0
  --archive=FILE       write it, for docker load, kind load image-archive, k3d image import and ctr images import
                       (default: dist/operator.tar if nothing is pushed)
  --tag=REF            its name in the archive (default: what is pushed, or kindred-operator with the version)
  --base=BASE          what to build on: an image in a registry; oci:DIR or oci:DIR:TAG, an OCI layout in a folder; or
                       local, made of this machine's Node.js, for tests and trials
                       (default: ${defaultBases.operator})
  --update-base        take the digest that the base's tag has today, and keep it in kindred.lock.json. Without it, that
                       file decides; a base that it does not list yet is looked up and added
  --platform=PLATFORM  such as linux/arm64; may be repeated (default: linux/amd64 and linux/arm64, if the base has them)
  --provisioner        make the provisioner's image instead
                       (default base: ${defaultBases.provisioner})
  --binary=NAME=FILE or --binary=NAME=URL#sha256:...
                       add a program as /usr/local/bin/NAME, such as rke for the provisioner; may be repeated, and given
                       once for each architecture
  --label=KEY=VALUE    such as org.opencontainers.image.revision=abc123; may be repeated
  --plain-http=HOST    speak HTTP without TLS to this registry; may be repeated (default: to registries on this machine)
  -o, --output=FORMAT  text, or json with base, platforms and archive (default: text)

SOURCE_DATE_EPOCH sets the image's creation time (default: 1970).
`,
  run: `kindred run [options]

Runs the operator on this machine against any cluster; where --kinds names Cluster or Kubeconfig, the provisioner.
The CRDs must exist there: kindred synth, kubectl apply.
All options are the operator's own: kindred run --help
`,
  prepare: `kindred prepare

Gets every part of the control plane, kubectl included where there is none: from KUBEBUILDER_ASSETS, the cache, the
official downloads, or by building it with Go. What is there already costs a look.
`,
};

/**
 * The help text, of one command or of all.
 *
 * @throws UsageError for a command that does not exist
 */
export function usage(topic?: string): string {
  if (topic === undefined || topic === 'help') return overview;
  const text = topics[topic];
  if (text === undefined) {
    throw new UsageError(`there is no help on "${topic}"; there is on ${Object.keys(topics).join(', ')}`);
  }
  return text;
}
