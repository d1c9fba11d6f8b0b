/**
 * Fields of a Cluster and a Kubeconfig. Their values end up in files and scripts on machines, so each string
 * has a maximum length and a pattern without quotes, line breaks, `$`, `;` and other characters with a
 * meaning in a shell. Only host keys contain a space.
 */
import { z } from 'zod';
import { cel } from '../kind/schema/cel';
import { dnsLabel, dnsSubdomain, mapOf, withRule } from '../kind/fields';

const domainOf = (label: string): string => `${label}([.]${label})*`;
/** Source: RFC 1035, 2.3.4: a label has at most 63 characters. */
const DOMAIN = domainOf('[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?');
const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const IPV4 = `${OCTET}([.]${OCTET}){3}`;
/** Groups of hexadecimal digits; the provisioner checks whether they are an address. */
const IPV6 = '[0-9a-f]{0,4}(:[0-9a-f]{0,4}){2,7}';
const PORT = ':[1-9][0-9]{0,4}';
/** A path's part that is neither hidden, nor `..`, nor an option of a command. */
const SEGMENT = '[A-Za-z0-9_][A-Za-z0-9._-]*';
/** The part of a label's key that names it, and a label's value. Source: Kubernetes, `IsQualifiedName` and `IsValidLabelValue`. */
const NAME_PART = '[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?';
/**
 * The domain before that name. Kubernetes limits its total length, not that of its labels. Source:
 * `IsDNS1123Subdomain`.
 */
const LABEL_PREFIX = domainOf('[a-z0-9]([-a-z0-9]*[a-z0-9])?');
const MAX_LABEL_PREFIX = 253;

function patternField(pattern: string, maxLength: number, what: string): z.ZodString {
  return z
    .string()
    .max(maxLength)
    .regex(new RegExp(`^(${pattern})$`), { error: `must be ${what}` });
}

/** A host name in lower case or an IP address. */
export const host = (): z.ZodString =>
  patternField(`${DOMAIN}|${IPV6}`, 253, 'a host name in lower case or an IP address');

/** The name of a node, which is also the value of one of its labels. */
export const nodeName = (): z.ZodString =>
  host().max(63, { error: 'must have at most 63 characters: it is the value of the label kubernetes.io/hostname too' });

/** An IPv4 or IPv6 address. */
export const ipAddress = (): z.ZodString => patternField(`${IPV4}|${IPV6}`, 39, 'an IPv4 or IPv6 address');

/** A range of IPv4 or IPv6 addresses. */
export const cidr = (): z.ZodString =>
  patternField(
    `${IPV4}/(3[0-2]|[12]?[0-9])|${IPV6}/(12[0-8]|1[01][0-9]|[1-9]?[0-9])`,
    43,
    'a range of addresses, such as 10.42.0.0/16',
  );

/** A domain such as cluster.local. */
export const domain = (): z.ZodString => patternField(DOMAIN, 253, 'a domain in lower case, such as cluster.local');

/** Where a registry or an object store listens, without a scheme. */
export const hostAndPort = (): z.ZodString =>
  patternField(`${DOMAIN}(${PORT})?`, 259, 'a host with an optional port, such as registry.example.com:5000');

/** A registry, with a path below it if need be. */
export const registryPrefix = (): z.ZodString =>
  patternField(
    `${DOMAIN}(${PORT})?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*`,
    512,
    'a registry, such as registry.example.com:5000/mirror',
  );

/** An address of a registry's mirror. */
export const endpointUrl = (): z.ZodString =>
  patternField(`https?://${DOMAIN}(${PORT})?(/${SEGMENT})*/?`, 512, 'a URL such as https://mirror.example.com:5000/v2');

/** A path to a file, relative or absolute, without hidden parts and without `..`. */
export const filePath = (): z.ZodString =>
  patternField(
    `/?${SEGMENT}(/${SEGMENT})*`,
    1024,
    'a path of letters, digits, "_", "-", "." and "/", without hidden parts',
  );

/** An absolute path on a machine. */
export const absolutePath = (): z.ZodString =>
  patternField(`(/${SEGMENT})+`, 512, 'an absolute path of letters, digits, "_", "-" and "."');

/**
 * Directories that cannot be the data directory of a distribution: those at the root of a machine, those of
 * the system and all that is in them, and those with subdirectories of many owners.
 */
const SYSTEM_DIRS = [
  '^/[^/]+$',
  '^/(bin|boot|dev|efi|etc|lib(32|64|x32)?|nix|ostree|proc|run|sbin|snap|sys|sysroot|usr)/',
  '^/home/[^/]+$',
  '^/var/[^/]+$',
  '^/var/(backups|cache|lock|log|mail|run|spool|tmp)/',
  '^/var/lib/(apt|containerd|dbus|docker|dpkg|kindred|kubelet|rpm|snapd|systemd)(/|$)',
].join('|');
const systemDirs = new RegExp(SYSTEM_DIRS);

/**
 * A distribution's data directory on a machine. Uninstalling deletes it as root, so nothing else may be in
 * it.
 */
export const dataDirectory = (): z.ZodString =>
  withRule(
    absolutePath(),
    cel(
      `!self.matches('${SYSTEM_DIRS}')`,
      "must be a folder of the distribution's own, not at the root and none of the system's, such as /var/lib/rancher/k3s or /data/k3s: " +
        'its contents are deleted when the machine leaves the cluster',
    ),
    (path) => !systemDirs.test(path),
  );

/** A path below the root of a bucket. */
export const objectPrefix = (): z.ZodString =>
  patternField(`${SEGMENT}(/${SEGMENT})*`, 512, 'a path such as backups/prod');

/** The name of a bucket. */
export const bucketName = (): z.ZodString =>
  patternField('[a-z0-9][a-z0-9.-]*[a-z0-9]', 63, "a bucket's name in lower case");

/** A region of an object store. */
export const region = (): z.ZodString => patternField('[a-z0-9]+(-[a-z0-9]+)*', 63, 'a region such as eu-central-1');

/** A user of a Linux machine. */
export const linuxUser = (): z.ZodString =>
  patternField('[a-z_][a-z0-9_.-]*', 32, "a user's name: lower-case letters, digits, and _, . or -");

/** A public host key, as `ssh-keyscan` prints it after the host. */
export const hostKey = (): z.ZodString =>
  patternField(
    '(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]+={0,2}',
    2048,
    'a public host key: its type, a space, and the key in base64',
  );

/** The value of a label or a taint; it may be empty. */
export const labelValue = (): z.ZodString => patternField(`(${NAME_PART})?`, 63, 'a valid value of a label');

const LABEL_KEY = `(${LABEL_PREFIX}/)?${NAME_PART}`;
const MAX_LABEL_KEY = MAX_LABEL_PREFIX + 1 + 63;
const LABEL_KEY_DESCRIPTION = `a valid key of a label: a name of at most 63 characters, and in front of it, if need be, a domain of at most ${MAX_LABEL_PREFIX} and "/"`;

/** The key of a label or a taint. */
export const labelKey = (): z.ZodString =>
  withRule(
    patternField(LABEL_KEY, MAX_LABEL_KEY, LABEL_KEY_DESCRIPTION),
    cel(`self.indexOf('/') <= ${MAX_LABEL_PREFIX}`, `must be ${LABEL_KEY_DESCRIPTION}`),
    hasShortPrefix,
  );

/** A node's labels. */
export const nodeLabels = (): z.ZodRecord<z.ZodString, z.ZodString> =>
  withKeyPattern(
    withRule(
      mapOf(labelValue(), { maxProperties: 32 }),
      cel(`self.all(key, key.indexOf('/') <= ${MAX_LABEL_PREFIX})`, `each key must be ${LABEL_KEY_DESCRIPTION}`),
      (labels) => Object.keys(labels).every(hasShortPrefix),
    ),
    LABEL_KEY,
    MAX_LABEL_KEY,
    `each key must be ${LABEL_KEY_DESCRIPTION}`,
  );

function hasShortPrefix(key: string): boolean {
  return key.indexOf('/') <= MAX_LABEL_PREFIX;
}

/** Further arguments of a component, by name without dashes. */
export const extraArgs = (): z.ZodRecord<z.ZodString, z.ZodString> =>
  withKeyPattern(
    mapOf(patternField('[A-Za-z0-9_.,:/=@%+-]*', 1024, 'letters, digits and _ . , : / = @ % + -'), {
      maxProperties: 64,
    }),
    '[a-z][a-z0-9-]*',
    128,
    'each key must be the name of an argument without dashes in front, such as max-pods',
  );

type StringMap = z.ZodRecord<z.ZodString, z.ZodString>;

function withKeyPattern(map: StringMap, pattern: string, maxLength: number, message: string): StringMap {
  const anchored = `^(${pattern})$`;
  const compiled = new RegExp(anchored);
  return withRule(
    map,
    cel(`self.all(key, size(key) <= ${maxLength} && key.matches('${anchored}'))`, message),
    (value) => Object.keys(value).every((key) => key.length <= maxLength && compiled.test(key)),
  );
}

const secretRefFields = {
  namespace: dnsLabel().describe('Namespace of the Secret. The provisioner must be configured to read it.'),
  name: dnsSubdomain().describe('Name of the Secret.'),
};

/** A whole Secret. */
export const secretRef = z.object(secretRefFields);

/** One value of a Secret. */
export const secretKeyRef = z.object({
  ...secretRefFields,
  key: secretKey().describe('Key within the Secret.'),
});

/** A private SSH key in a Secret; the default key is that of the type `kubernetes.io/ssh-auth`. */
export const sshKeyRef = z.object({
  ...secretRefFields,
  key: secretKey().default('ssh-privatekey').describe('Key within the Secret.'),
});

function secretKey(): z.ZodString {
  return patternField('[-._a-zA-Z0-9]+', 253, 'letters, digits, "-", "_" and "."').min(1);
}
