import { readFile } from 'node:fs/promises';
import { messageOf } from '../local/assets/errors';
import { HttpClient, discard, errorOfStatus, isRedirect, withRetries } from './http';
import type { LayerEntry } from './image';
import { ImageError, formatPlatform, readAll, sha256 } from './oci';
import type { Platform } from './oci';

/** A program for `/usr/local/bin` of an image. */
export interface BinarySource {
  readonly name: string;
  /** A file, or a URL with https. */
  readonly from: string;
  /** `sha256:` and 64 hex digits. @default a file is taken as it is; a URL needs it */
  readonly digest: string | undefined;
}

/** A program that was read and checked. */
export interface Binary {
  readonly name: string;
  readonly from: string;
  readonly content: Uint8Array;
  /** Undefined: it runs everywhere, such as a script. */
  readonly architecture: string | undefined;
}

/** ELF's numbers of architectures. */
const machines: Readonly<Record<number, string>> = {
  0x03: '386',
  0x28: 'arm',
  0x3e: 'amd64',
  0xb7: 'arm64',
  0xf3: 'riscv64',
  0x16: 's390x',
  0x15: 'ppc64le',
};

/**
 * Reads a program and compares its checksum.
 *
 * @throws ImageError when it cannot be read, or is another one
 */
export async function readBinary({ name, from, digest }: BinarySource): Promise<Binary> {
  const content = /^https:/.test(from) ? await download(name, from) : await readProgram(name, from);
  const found = sha256(content);
  if (digest !== undefined && found !== digest) {
    throw new ImageError(
      `the program ${name} from ${shown(from)} has the checksum ${found}, not ${digest}. It was changed or damaged, or the ` +
        'checksum is that of another version: compare it with what its makers publish.',
    );
  }
  return { name, from, content, architecture: architectureOf(content) };
}

/**
 * The programs for a platform, as entries of a layer.
 *
 * @throws ImageError when a program is only there for other platforms
 */
export function binariesFor(platform: Platform, binaries: readonly Binary[]): readonly LayerEntry[] {
  return [...new Set(binaries.map(({ name }) => name))].toSorted().map((name) => {
    const given = binaries.filter((binary) => binary.name === name);
    const fitting = given.filter(
      ({ architecture }) => architecture === undefined || architecture === platform.architecture,
    );
    const [binary, second] = fitting;
    if (binary === undefined) {
      throw new ImageError(
        `the program ${name} is there for ${given.map(({ architecture = '' }) => architecture).join(', ')}, and not for the ` +
          `platform ${formatPlatform(platform)}: give that too with --binary, or leave the platform out with --platform`,
      );
    }
    if (second !== undefined) {
      throw new ImageError(
        `the program ${name} is given twice for ${formatPlatform(platform)}: ${shown(binary.from)}, ${shown(second.from)}`,
      );
    }
    return { type: 'file', path: `/usr/local/bin/${name}`, mode: 0o755, content: binary.content };
  });
}

/** Where a program is from, for messages: of a URL only what names it, since its query may sign it. */
function shown(from: string): string {
  if (!URL.canParse(from) || !from.startsWith('https:')) return from;
  const { origin, pathname } = new URL(from);
  return `${origin}${pathname}`;
}

function architectureOf(content: Uint8Array): string | undefined {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  if (bytes.length < 20 || bytes.readUInt32BE(0) !== 0x7f454c46) return undefined;
  const isLittleEndian = bytes[5] === 1;
  const machine = isLittleEndian ? bytes.readUInt16LE(18) : bytes.readUInt16BE(18);
  return machines[machine] ?? `ELF machine ${machine}`;
}

async function readProgram(name: string, file: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new ImageError(`the program ${name} cannot be read: ${messageOf(cause)}`, { cause });
  }
}

/** More than any program has that a provisioner needs. */
const MAX_PROGRAM_BYTES = 512 * 1024 * 1024;
const MAX_REDIRECTS = 5;

async function download(name: string, from: string): Promise<Uint8Array> {
  const fail = (problem: string): never => {
    throw new ImageError(`the program ${name} cannot be downloaded from ${shown(from)}: ${problem}`);
  };
  let url = new URL(from);
  const client = new HttpClient({ url, nameOf: ({ host }) => host });
  try {
    return await withRetries(async () => {
      for (let count = 0; ; count += 1) {
        const response = await client.request(url, { method: 'GET' });
        if (response.status === 200) return await readAll(response.body, MAX_PROGRAM_BYTES);
        await discard(response);
        if (!isRedirect(response)) throw errorOfStatus(`${url.host} answered with ${response.status}`, response);
        const location = String(response.headers['location']);
        const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
        if (count >= MAX_REDIRECTS || next?.protocol !== 'https:')
          return fail('it redirects without end, or without TLS');
        url = next;
      }
    });
  } catch (cause) {
    return fail(messageOf(cause));
  } finally {
    await client.close();
  }
}
