import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { layoutBase, registryBase } from '../../image/base';
import { mediaTypes, readAll, sha256 } from '../../image/oci';
import type { Index, Manifest } from '../../image/oci';
import { pushImage } from '../../image/publish';
import { parseReference } from '../../image/reference';
import { goTool, goToolsUnavailable } from '../support/go-tools/build';
import { startRegistry, user } from '../support/registry';
import type { TestRegistry } from '../support/registry';
import { temporaryFolder } from '../support/temporary-folder';
import { tinyImage } from './images';
import { auth, clientOf, dockerConfig, messageOf, push } from './registry-clients';

// Against the registry that most others are made of, and read by a client that is not ours. Both are built on first use.
jest.setTimeout(900_000);
const why = goToolsUnavailable();
if (why !== undefined) console.warn(why);
const describeWithRegistry = why === undefined ? describe : describe.skip;

const folder = temporaryFolder('kindred-registry-');
const crane = (...args: readonly string[]): Buffer =>
  execFileSync(goTool('crane'), args, { stdio: ['ignore', 'pipe', 'pipe'] });

/** The files in the layers of an image, as another client reads them. `crane validate` takes compressed layers only. */
const filesOf = (reference: string): readonly string[] => {
  const input = crane('export', '--platform=linux/arm64', reference, '-');
  const listed = execFileSync('tar', ['-t'], { input, encoding: 'utf8' });
  return [...new Set(listed.trim().split('\n'))].toSorted();
};

/** Stores an image of both platforms once more, with the media types of Docker, as the tag `docker`. */
async function convertToDocker(host: string, repository: string, tag: string): Promise<void> {
  const registry = clientOf(host);
  const store = async (reference: string, mediaType: string, content: string): Promise<void> => {
    const url = `http://${host}/v2/${repository}/manifests/${reference}`;
    const { status } = await fetch(url, { method: 'PUT', headers: { 'content-type': mediaType }, body: content });
    expect(status).toBe(201);
  };
  const read = async <T>(reference: string): Promise<T> =>
    JSON.parse((await readAll((await registry.manifest(repository, reference)).open())).toString()) as T;
  const index = await read<Index>(tag);
  const manifests = await Promise.all(
    index.manifests.map(async ({ digest, platform }) => {
      const { config, layers } = await read<Manifest>(digest);
      const content = JSON.stringify({
        schemaVersion: 2,
        mediaType: mediaTypes.dockerManifest,
        config: { ...config, mediaType: 'application/vnd.docker.container.image.v1+json' },
        layers: layers.map((layer) => ({ ...layer, mediaType: 'application/vnd.docker.image.rootfs.diff.tar' })),
      });
      const converted = sha256(content);
      await store(converted, mediaTypes.dockerManifest, content);
      return { mediaType: mediaTypes.dockerManifest, digest: converted, size: content.length, platform };
    }),
  );
  const list = { schemaVersion: 2, mediaType: mediaTypes.dockerIndex, manifests };
  await store('docker', mediaTypes.dockerIndex, JSON.stringify(list));
}

describeWithRegistry('a registry without login', () => {
  let server: TestRegistry;
  beforeAll(async () => (server = await startRegistry(join(folder, 'plain'))));
  afterAll(() => server.end());

  test('gets an image that another client reads byte by byte', async () => {
    const image = await tinyImage();
    const pushed = await push(clientOf(server.host), 'team/app:1');
    expect(pushed).toMatchObject({ uploaded: 5, present: 0, mounted: 0 });
    const reference = `${server.host}/team/app:1`;
    expect(crane('manifest', reference).equals(await readAll(image.root.open()))).toBe(true);
    expect(filesOf(reference)).toEqual(['bin', 'bin/node', 'operator.cjs']);
    const layout = join(folder, 'pulled');
    crane('pull', '--format=oci', reference, layout);
    expect((await layoutBase(layout, undefined)).digest).toBe(image.root.descriptor.digest);
  });

  test('is sent no blob twice, and none that another repository has', async () => {
    await push(clientOf(server.host), 'team/app:1');
    expect(await push(clientOf(server.host), 'team/app:2')).toMatchObject({ uploaded: 0, present: 5 });
    const registry = clientOf(server.host);
    const base = await registryBase(registry, parseReference(`${server.host}/team/app:1`), undefined);
    const on = await tinyImage('on it', base);
    const to = parseReference(`${server.host}/other/app`);
    // The two configs and the layer on top are new; the three layers of the base are taken from its repository.
    expect(await pushImage(registry, to, on)).toMatchObject({ uploaded: 3, mounted: 3, present: 0 });
    const found = await registryBase(registry, to, [{ os: 'linux', architecture: 'arm64' }]);
    expect(found.digest).toBe(on.root.descriptor.digest);
  });

  test('may have a base in the format of Docker', async () => {
    await push(clientOf(server.host), 'team/app:1');
    await convertToDocker(server.host, 'team/app', '1');
    const registry = clientOf(server.host);
    const { mediaType } = (await registry.manifest('team/app', 'docker')).descriptor;
    expect(mediaType).toBe('application/vnd.docker.distribution.manifest.list.v2+json');
    const base = await registryBase(registry, parseReference(`${server.host}/team/app:docker`), undefined);
    const types = base.images.flatMap(({ layers }) => layers.map(({ descriptor }) => descriptor.mediaType));
    expect(new Set(types)).toEqual(new Set(['application/vnd.oci.image.layer.v1.tar']));
    await pushImage(registry, parseReference(`${server.host}/team/on-docker:1`), await tinyImage('on', base));
    expect(filesOf(`${server.host}/team/on-docker:1`)).toEqual(['bin', 'bin/node', 'operator.cjs']);
  });

  test('gives a base to another registry', async () => {
    const other = await startRegistry(join(folder, 'other'));
    try {
      await push(clientOf(server.host), 'team/app:1');
      const base = await registryBase(clientOf(server.host), parseReference(`${server.host}/team/app:1`), undefined);
      const to = parseReference(`${other.host}/copy:1`);
      expect(await pushImage(clientOf(other.host), to, await tinyImage('on', base))).toMatchObject({
        uploaded: 6,
        mounted: 0,
      });
    } finally {
      await other.end();
    }
  });

  test('that lacks a tag, a digest or a platform says which', async () => {
    await push(clientOf(server.host), 'team/app:1');
    const base = (text: string, architecture?: string): Promise<unknown> =>
      registryBase(
        clientOf(server.host),
        parseReference(`${server.host}/${text}`),
        architecture === undefined ? undefined : [{ os: 'linux', architecture }],
      );
    expect(await messageOf(base('team/app:none'))).toBe(
      `the registry has no ${server.host}/team/app:none. Check the name and the tag.`,
    );
    const digest = `sha256:${'0'.repeat(64)}`;
    expect(await messageOf(base(`team/app@${digest}`))).toMatch(
      new RegExp(`has no ${server.host}/team/app@${digest} \\(any more\\).*--update-base`),
    );
    expect(await messageOf(base('team/app:1', 's390x'))).toMatch(
      /has no image for the platform linux\/s390x: it has linux\/amd64, linux\/arm64/,
    );
  });
});

describeWithRegistry('a registry that wants a password', () => {
  test('gets that of docker login', async () => {
    const server = await startRegistry(join(folder, 'basic'), 'basic');
    try {
      const config = dockerConfig('login', { auths: { [server.host]: { auth: auth(user.password) } } });
      expect(await push(clientOf(server.host, config), 'app:1')).toMatchObject({ uploaded: 5 });
      expect(await messageOf(push(clientOf(server.host), 'x:1'))).toMatch(/wants credentials, and there are none/);
    } finally {
      await server.end();
    }
  });
});

describeWithRegistry('a registry that wants tokens', () => {
  let server: TestRegistry;
  beforeAll(async () => (server = await startRegistry(join(folder, 'token'), 'token')));
  afterAll(() => server.end());

  test('gives one for a password and for an identity token, and one without for what is public', async () => {
    const config = dockerConfig('token-login', { auths: { [server.host]: { auth: auth(user.password) } } });
    expect(await push(clientOf(server.host, config), 'public/app:1')).toMatchObject({ uploaded: 5 });
    const identity = dockerConfig('identity', { auths: { [server.host]: { identitytoken: user.refreshToken } } });
    expect(await push(clientOf(server.host, identity), 'private/app:1')).toMatchObject({ uploaded: 5 });
    expect(server.tokenRequests).toContain('POST repository:private/app:pull,push');
    const found = await registryBase(clientOf(server.host), parseReference(`${server.host}/public/app:1`), undefined);
    expect(found.images).toHaveLength(2);
    // Both repositories are asked for, else nothing could be mounted.
    const registry = clientOf(server.host, config);
    const base = await registryBase(registry, parseReference(`${server.host}/public/app:1`), undefined);
    const to = parseReference(`${server.host}/private/on:1`);
    expect(await pushImage(registry, to, await tinyImage('on', base))).toMatchObject({ mounted: 3 });
    expect(server.tokenRequests).toContain('GET repository:private/on:pull,push repository:public/app:pull');
  });

  test('says who may not do what', async () => {
    expect(await messageOf(push(clientOf(server.host), 'public/app:2'))).toMatch(
      /wants credentials, and there are none/,
    );
    const wrong = dockerConfig('token-wrong', { auths: { [server.host]: { auth: auth('wr0ng') } } });
    expect(await messageOf(push(clientOf(server.host, wrong), 'x:1'))).toMatch(
      /refuses the credentials of .*config\.json/,
    );
  });
});
