import { ImageError, isDigest } from './oci';

/** An image in a registry: `registry.example.com:5000/team/app:1.0@sha256:...`. */
export interface ImageReference {
  /** The registry's host as users write it, with the port if there is one: `docker.io`. */
  readonly host: string;
  readonly repository: string;
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}

const DOCKER_HUB = 'docker.io';
const repositoryPattern = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/;
const hostPattern = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d{1,5})?$/;

/**
 * Parses the reference of an image as Docker does: without a host it is Docker Hub's, and `node` is `library/node`.
 *
 * @throws ImageError with the part that is wrong
 */
export function parseReference(text: string): ImageReference {
  const fail = (problem: string): never => {
    // What stands before an @ may be a password.
    const shown = /@(?!sha256:)/.test(text) ? 'the reference' : `"${text}"`;
    throw new ImageError(
      `${shown} is not the reference of an image: ${problem}, such as registry.example.com/team/app:1.0`,
    );
  };
  if (/@(?!sha256:)/.test(text))
    fail('credentials do not belong in it (docker login stores them), and a digest is sha256:...');
  if (text.includes('://')) fail('give it without a scheme');
  const [name = '', digest] = text.split('@');
  if (digest !== undefined && !isDigest(digest)) fail('a digest is sha256: and 64 hexadecimal digits');
  const [, path = '', tag] = /^(.*?)(?::([^:/]*))?$/.exec(name) ?? [];
  if (tag !== undefined && !/^\w[\w.-]{0,127}$/.test(tag))
    fail('the tag has letters, digits, and _.- inside, at most 128');
  const [first = '', ...rest] = path.split('/');
  const hasHost = rest.length > 0 && (/[.:[]/.test(first) || first === 'localhost');
  const host = hasHost ? first : DOCKER_HUB;
  const given = hasHost ? rest.join('/') : path;
  if (!hostPattern.test(host)) fail('the registry is a host name, with a port if need be');
  if (!repositoryPattern.test(given)) fail('the repository has lower-case letters, digits, and ._-/ inside');
  const repository = host === DOCKER_HUB && !given.includes('/') ? `library/${given}` : given;
  return { host, repository, tag, digest };
}

/** The full name: `docker.io/library/node:22`. The digest comes last. */
export function formatReference({ host, repository, tag, digest }: ImageReference): string {
  return `${host}/${repository}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
}

/** Where the registry of a host answers. */
export function registryUrl(host: string, plainHttp: boolean): URL {
  if (host === DOCKER_HUB) return new URL('https://registry-1.docker.io');
  return new URL(`${plainHttp || isLoopback(host) ? 'http' : 'https'}://${host}`);
}

/** Whether a host is this machine: its registries speak HTTP by convention, and need no proxy. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?$/.test(host);
}
