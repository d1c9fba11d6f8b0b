import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { App, Chart } from 'cdk8s';
import { HelloApp } from '../../constructs/kinds';
import { OperatorDeployment } from '../../constructs/operator';
import { archivePath, writeArchive } from '../../image/publish';
import { layoutBase, type Base } from '../../image/base';
import { binariesFor, readBinary } from '../../image/binaries';
import { buildImage } from '../../image/image';
import { layerOf } from '../../image/image';
import { lockDigest, lockedDigest } from '../../image/lock';
import { mediaTypes, readAll, sha256 } from '../../image/oci';
import type { ImageConfig, Index } from '../../image/oci';
import { formatReference, parseReference, registryUrl } from '../../image/reference';
import { temporaryFolder } from '../support/temporary-folder';
import { textEntry, tinyBase, tinyImage, writeLayout } from './images';

interface Deployment {
  readonly kind: string;
  readonly spec: {
    readonly template: {
      readonly spec: { readonly securityContext: { readonly runAsUser: number; readonly runAsGroup: number } };
    };
  };
}

const folder = temporaryFolder('kindred-image-');
/** The path of the index of all platforms, in an OCI layout. */
function indexOf(layout: string): string {
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as Index;
  return join(layout, 'blobs', ...manifests[0]!.digest.split(':'));
}

const amd64 = { os: 'linux', architecture: 'amd64' };
const arm64 = { os: 'linux', architecture: 'arm64' };

describe('a layer', () => {
  test('depends on nothing but its entries', async () => {
    const entries = [textEntry('/b', 'b'), textEntry('/a', 'a'), { type: 'symlink', path: '/c', target: 'a' } as const];
    const layer = await layerOf(entries);
    expect((await layerOf(entries.toReversed())).descriptor).toEqual(layer.descriptor);
    // The bytes that every version of Node.js and every machine must give.
    expect(layer.descriptor.digest).toMatchInlineSnapshot(
      `"sha256:2c7267086d5ffbb09fea1b0fe6c9d06a0f75bc0523662aeac9d8b6e33639785a"`,
    );
    const file = join(folder, 'layer.tar');
    writeFileSync(file, await readAll(layer.open()));
    const list = execFileSync('tar', ['--utc', '-tvf', file], { encoding: 'utf8' });
    expect(list.split('\n').map((line) => line.replace(/ +/g, ' '))).toEqual([
      '-r--r--r-- 0/0 1 1970-01-01 00:00 a',
      '-r--r--r-- 0/0 1 1970-01-01 00:00 b',
      'lrwxrwxrwx 0/0 0 1970-01-01 00:00 c -> a',
      '',
    ]);
  });
});

describe('an image', () => {
  test('runs the program with the Node.js of its base, as the user of the Deployment', async () => {
    const { images } = await tinyImage();
    const config = JSON.parse((await readAll(images[0]!.config.open())).toString()) as ImageConfig & {
      readonly config: { readonly User: string };
    };
    expect(config).toMatchObject({
      architecture: 'amd64',
      config: {
        Entrypoint: ['/bin/node', '/operator.cjs'],
        Env: ['PATH=/bin'],
        Labels: { of: 'base', title: 'tiny' },
      },
    });
    expect(config.rootfs.diff_ids).toHaveLength(2);
    const chart = new Chart(new App(), 'test');
    new OperatorDeployment(chart, 'operator', { name: 'o', namespace: 'n', image: 'i', kinds: [HelloApp] });
    const deployment = (chart.toJson() as readonly Deployment[]).find(({ kind }) => kind === 'Deployment');
    const { runAsUser, runAsGroup } = deployment!.spec.template.spec.securityContext;
    expect(config.config.User).toBe(`${runAsUser}:${runAsGroup}`);
  });

  test('takes node from PATH where its base starts something else', async () => {
    const base = await tinyBase(['amd64']);
    const [image] = base.images;
    const config = { ...image!.config, config: { Entrypoint: ['docker-entrypoint.sh'] } };
    const built = buildImage(
      { ...base, images: [{ ...image!, config }] },
      { layers: () => [], program: '/operator.cjs', labels: {} },
    );
    const text = (await readAll(built.images[0]!.config.open())).toString();
    expect(text).toContain('"Entrypoint":["node","/operator.cjs"]');
  });

  test('has the same digest if nothing differs, and another one if a byte does', async () => {
    const digest = async (text: string): Promise<string> => (await tinyImage(text)).root.descriptor.digest;
    expect(await digest('program')).toBe(await digest('program'));
    expect(await digest('program')).not.toBe(await digest('Program'));
  });

  test('of one platform is a manifest, of several an index', async () => {
    expect((await tinyImage()).root.descriptor.mediaType).toContain('image.index');
    expect((await tinyImage('x', await tinyBase(['arm64']))).root.descriptor.mediaType).toContain('image.manifest');
  });
});

describe('an archive', () => {
  test('has the same bytes for the same image, and is an OCI layout and an archive of Docker', async () => {
    const image = await tinyImage();
    const files = [join(folder, 'one.tar'), join(folder, 'two.tar')];
    for (const file of files) await writeArchive(file, image, parseReference('registry.example.com/a:1'));
    const [one, two] = files.map((file) => readFileSync(file));
    expect(one!.equals(two!)).toBe(true);
    const show = (name: string): string => execFileSync('tar', ['-xOf', files[0]!, name], { encoding: 'utf8' });
    expect(JSON.parse(show('oci-layout'))).toEqual({ imageLayoutVersion: '1.0.0' });
    expect(JSON.parse(show('index.json'))).toMatchObject({
      manifests: [
        {
          digest: image.root.descriptor.digest,
          annotations: { 'io.containerd.image.name': 'registry.example.com/a:1' },
        },
      ],
    });
    const [entry] = JSON.parse(show('manifest.json')) as [{ Config: string; RepoTags: string[]; Layers: string[] }];
    expect(entry.RepoTags).toEqual(['registry.example.com/a:1']);
    for (const name of [entry.Config, ...entry.Layers]) expect(sha256(show(name))).toBe(`sha256:${name.slice(-64)}`);
  });

  test('that cannot be written is an error with its name, and leaves nothing behind', async () => {
    const file = join(folder, 'one.tar', 'below-a-file.tar');
    await expect(writeArchive(file, await tinyImage(), parseReference('a:1'))).rejects.toThrow(
      /the archive .*below-a-file\.tar cannot be written: .*(EEXIST|ENOTDIR)/,
    );
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });
});

describe('the path of an archive', () => {
  test('may be new, a file, or a link to one', async () => {
    const file = join(folder, 'plain');
    writeFileSync(file, '');
    symlinkSync(file, join(folder, 'link'));
    expect(await archivePath(join(folder, 'new.tar'))).toBe(join(folder, 'new.tar'));
    expect(await archivePath(file)).toBe(file);
    expect(await archivePath(join(folder, 'link'))).toBe(file);
  });

  test('may not be a folder or a device, which would be replaced', async () => {
    await expect(archivePath(folder)).rejects.toThrow(/cannot be written: there is a folder or a device/);
    await expect(archivePath('/dev/null')).rejects.toThrow(/cannot be written: there is a folder or a device/);
  });
});

describe('a base in an OCI layout', () => {
  test('that calls an image one of another platform is refused', async () => {
    const layout = await writeLayout(join(folder, 'mismatch'), await tinyImage());
    const index = JSON.parse(readFileSync(indexOf(layout), 'utf8')) as Index;
    const [amd, arm] = index.manifests;
    const swapped = JSON.stringify({ ...index, manifests: [amd, { ...amd, platform: arm!.platform }] });
    const digest = sha256(swapped);
    writeFileSync(join(layout, 'blobs', ...digest.split(':')), swapped);
    const root = { mediaType: mediaTypes.index, digest, size: swapped.length };
    writeFileSync(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [root] }));
    const message = /names an image for linux\/arm64, which is for linux\/amd64/;
    for (const platforms of [[arm64], [arm64, amd64], [amd64, arm64]])
      await expect(layoutBase(layout, platforms)).rejects.toThrow(message);
  });

  test('gives an image once, though two names of its platform are asked for', async () => {
    const layout = await writeLayout(join(folder, 'twice'), await tinyImage());
    const base = await layoutBase(layout, [arm64, { ...arm64, variant: 'v8' }]);
    expect(base.images).toHaveLength(1);
  });

  test('gives the images of both platforms, and only those that are asked for', async () => {
    const layout = await writeLayout(join(folder, 'layout'), await tinyImage());
    const base = await layoutBase(layout, undefined);
    expect(base.images.map(({ platform }) => platform.architecture)).toEqual(['amd64', 'arm64']);
    expect((await layoutBase(`${layout}:latest`, [arm64])).images).toHaveLength(1);
    // Its folder must not get into the image.
    const elsewhere = await writeLayout(join(folder, 'elsewhere'), await tinyImage());
    const digests = [base, await layoutBase(elsewhere, undefined)].map((from) => tinyImage('on it', from));
    expect((await digests[0])!.root.descriptor).toEqual((await digests[1])!.root.descriptor);
  });

  describe('with several images directly in its folder', () => {
    /** A layout whose index has the manifests of two images, for two platforms each, by name and platform. */
    async function flatLayout(name: string, tags: readonly [string, string]): Promise<string> {
      const layout = join(folder, name);
      const manifests = [];
      for (const [i, tag] of tags.entries()) {
        await writeLayout(layout, await tinyImage(`${i}`));
        const { manifests: own } = JSON.parse(readFileSync(indexOf(layout), 'utf8')) as Index;
        const annotations = { 'org.opencontainers.image.ref.name': tag };
        // The one for amd64 of the first image stands before the one of the second.
        manifests.push(...own.map((manifest) => ({ ...manifest, annotations })));
      }
      writeFileSync(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
      return layout;
    }
    const programOf = ({ images }: Base): readonly string[] =>
      images.map(({ layers }) => layers.at(-1)!.descriptor.digest);

    test('takes those of the name that is asked for', async () => {
      const layout = await flatLayout('flat', ['1', '2']);
      const [first, second] = [await layoutBase(`${layout}:1`, undefined), await layoutBase(`${layout}:2`, undefined)];
      const alone = await layoutBase(await writeLayout(join(folder, 'alone'), await tinyImage('1')), undefined);
      expect(programOf(second)).toEqual(programOf(alone));
      expect(programOf(first)).not.toEqual(programOf(second));
      expect(first.digest).not.toBe(second.digest);
    });

    test('refuses to choose between two for one platform', async () => {
      const layout = await flatLayout('ambiguous', ['1', '2']);
      await expect(layoutBase(layout, undefined)).rejects.toThrow(/has several images: name one, .*it has 1, 2/);
    });
  });

  test.each([
    ['a platform that it lacks', ['s390x'], /platform linux\/s390x: it has linux\/amd64, linux\/arm64/],
    ['one of two that it lacks', ['amd64', 'arm'], /platform linux\/arm: it has/],
  ])('refuses %s', async (_, architectures, message) => {
    const layout = await writeLayout(join(folder, 'platforms'), await tinyImage());
    const platforms = architectures.map((architecture) => ({ os: 'linux', architecture }));
    await expect(layoutBase(layout, platforms)).rejects.toThrow(message);
  });

  test('refuses what is no layout, and a name that is not in it', async () => {
    await expect(layoutBase(join(folder, 'nothing'), undefined)).rejects.toThrow(
      /is not an OCI layout: ENOENT.*skopeo/s,
    );
    const layout = await writeLayout(join(folder, 'named'), await tinyImage());
    await expect(layoutBase(`${layout}:other`, undefined)).rejects.toThrow(/no such image in .*it has latest/);
  });

  test('tells a damaged file by its digest', async () => {
    const image = await tinyImage('x', await tinyBase(['amd64']));
    const layout = await writeLayout(join(folder, 'damaged'), image);
    const { digest } = image.images[0]!.layers[0]!.descriptor;
    writeFileSync(join(layout, 'blobs', ...digest.split(':')), 'damaged');
    const base = await layoutBase(layout, undefined);
    const archive = writeArchive(join(folder, 'd.tar'), await tinyImage('y', base), parseReference('a:1'));
    await expect(archive).rejects.toThrow(`the content of ${digest} is not what its digest says`);
  });
});

describe('a binary', () => {
  /** A file that looks like a program for a machine. */
  const elf = (machine: number): Buffer => {
    const header = Buffer.alloc(64);
    header.write('\x7fELF\x02\x01', 'latin1');
    header.writeUInt16LE(machine, 18);
    return header;
  };

  test('goes to the platform that it is made for', async () => {
    writeFileSync(join(folder, 'amd'), elf(0x3e));
    writeFileSync(join(folder, 'arm'), elf(0xb7));
    const read = (from: string) =>
      readBinary({ name: 'rke', from: join(folder, from), digest: sha256(readFileSync(join(folder, from))) });
    const binaries = [await read('amd'), await read('arm')];
    expect(binariesFor(arm64, binaries)).toMatchObject([{ path: '/usr/local/bin/rke', content: elf(0xb7) }]);
    expect(() => binariesFor(arm64, [binaries[0]!])).toThrow(
      /rke is there for amd64, and not for the platform linux\/arm64/,
    );
    expect(() => binariesFor(amd64, [binaries[0]!, binaries[0]!])).toThrow(/given twice for linux\/amd64/);
  });

  test('of a URL is named without what may sign it', async () => {
    const url = 'https://127.0.0.1:1/rke?signature=s3cret';
    const reading = readBinary({ name: 'rke', from: url, digest: sha256('') });
    await expect(reading).rejects.toThrow(
      /^the program rke cannot be downloaded from https:\/\/127\.0\.0\.1:1\/rke: (?!.*s3cret)/,
    );
  });

  test('with another checksum is refused', async () => {
    const digest = `sha256:${'0'.repeat(64)}`;
    await expect(readBinary({ name: 'rke', from: join(folder, 'amd'), digest })).rejects.toThrow(
      /the program rke from .* has the checksum sha256:\w+, not sha256:0000/,
    );
    await expect(readBinary({ name: 'rke', from: join(folder, 'no'), digest })).rejects.toThrow(
      /cannot be read: ENOENT/,
    );
  });
});

describe('the lock file', () => {
  test('keeps what builds write at the same time', async () => {
    const file = join(folder, 'at-once.lock.json');
    const bases = Array.from({ length: 12 }, (_, i) => `r.example.com/base:${i}`);
    await Promise.all(bases.map((base) => lockDigest(file, base, sha256(base))));
    for (const base of bases) expect(await lockedDigest(file, base)).toBe(sha256(base));
    expect(readdirSync(folder).filter((name) => name.startsWith('at-once'))).toEqual(['at-once.lock.json']);
  });

  test('keeps the digest of each base, sorted', async () => {
    const file = join(folder, 'kindred.lock.json');
    const [a, b] = [sha256('a'), sha256('b')];
    expect(await lockedDigest(file, 'r/a:1')).toBeUndefined();
    await lockDigest(file, 'r/b:1', b);
    await lockDigest(file, 'r/a:1', a);
    expect(await lockedDigest(file, 'r/b:1')).toBe(b);
    expect(readFileSync(file, 'utf8')).toBe(`${JSON.stringify({ bases: { 'r/a:1': a, 'r/b:1': b } }, undefined, 2)}\n`);
  });

  test.each([
    ['{', /cannot be used: .*JSON/],
    ['{"bases":{"r/a:1":"latest"}}', /the digest of r\/a:1 is not sha256:/],
  ])('%s is an error', async (text, message) => {
    const file = join(folder, 'bad.lock.json');
    writeFileSync(file, text);
    await expect(lockedDigest(file, 'r/a:1')).rejects.toThrow(message);
  });
});

describe('a reference', () => {
  const digest = sha256('x');
  test.each([
    ['node', 'docker.io/library/node'],
    ['team/app:1', 'docker.io/team/app:1'],
    ['localhost/app', 'localhost/app'],
    ['127.0.0.1:5000/team/app:1.0', '127.0.0.1:5000/team/app:1.0'],
    [`gcr.io/a/b:c@${digest}`, `gcr.io/a/b:c@${digest}`],
  ])('%s is %s', (text, full) => expect(formatReference(parseReference(text))).toBe(full));

  test.each([
    ['', /the repository has lower-case letters/],
    ['Team/App', /the repository has lower-case letters/],
    ['https://r.example.com/a', /without a scheme/],
    ['r.example.com/a:', /the tag has letters/],
    ['r.example.com/a@sha256:12', /64 hexadecimal digits/],
  ])('%j is refused', (text, message) => expect(() => parseReference(text)).toThrow(message));

  test('with a password is refused without showing it', () => {
    expect(() => parseReference('me:s3cret@r.example.com/a')).toThrow(/docker login/);
    expect(() => parseReference('me:s3cret@r.example.com/a')).not.toThrow(/s3cret/);
  });

  test('leads to a registry with TLS, except on this machine', () => {
    expect(registryUrl('docker.io', false).href).toBe('https://registry-1.docker.io/');
    expect(registryUrl('r.example.com:5000', false).href).toBe('https://r.example.com:5000/');
    expect(registryUrl('r.example.com:5000', true).href).toBe('http://r.example.com:5000/');
    expect(registryUrl('localhost:5000', false).href).toBe('http://localhost:5000/');
  });
});
