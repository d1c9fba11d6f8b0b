import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { pushImage } from '../../image/publish';
import { parseReference } from '../../image/reference';
import { Registry } from '../../image/registry';
import { CertificateAuthority } from '../../local/certificates';
import { version } from '../../package.json';
import { tinyImage } from '../image/images';
import { containersUnavailable, startContainerd } from '../support/containers';
import type { Containerd } from '../support/containers';
import { goTool, goToolsUnavailable } from '../support/go-tools/build';
import { kindredBuild } from '../support/kindred-build';
import type { BuildResult } from '../support/kindred-build';
import { startRegistry, user } from '../support/registry';
import { temporaryFolder } from '../support/temporary-folder';

// What other programs make of an image: a registry, a client of registries, and containerd.
jest.setTimeout(900_000);

const folder = temporaryFolder('kindred-build-');
const [noContainers, noRegistry] = [containersUnavailable(), goToolsUnavailable()];
for (const why of [noContainers, noRegistry]) if (why !== undefined) console.warn(why);

const kindred = (args: readonly string[], cwd: string, env?: NodeJS.ProcessEnv): Promise<BuildResult> =>
  kindredBuild(args, { cwd, env });

async function build(args: readonly string[], cwd: string, env?: NodeJS.ProcessEnv): Promise<BuildResult> {
  const result = await kindred(args, cwd, env);
  if (result.code !== 0) throw new Error(`kindred build ${args.join(' ')} failed: ${result.stderr}`);
  return result;
}

(noRegistry === undefined ? describe : describe.skip)('a push', () => {
  test('keeps the digest of the base in the lock file, prints the digest, and no secret', async () => {
    const open = await startRegistry(join(folder, 'open'));
    const closed = await startRegistry(join(folder, 'closed'), 'basic');
    const docker = join(folder, 'docker');
    mkdirSync(docker);
    const auth = Buffer.from(`${user.name}:${user.password}`).toString('base64');
    writeFileSync(join(docker, 'config.json'), JSON.stringify({ auths: { [closed.host]: { auth } } }));
    const env = { DOCKER_CONFIG: docker, KINDRED_CACHE: join(folder, 'cache') };
    const registry = new Registry(open.host, { cacheFolder: join(folder, 'cache-of-test') });
    const pushBase = async (text: string): Promise<string> => {
      const image = await tinyImage(text);
      await pushImage(registry, parseReference(`${open.host}/base:1`), image);
      return image.root.descriptor.digest;
    };
    const cwd = join(folder, 'cwd');
    mkdirSync(cwd);
    const lock = (): unknown => JSON.parse(readFileSync(join(cwd, 'kindred.lock.json'), 'utf8'));
    try {
      const [base, target] = [`${open.host}/base:1`, `${closed.host}/team/operator:1`];
      const before = await pushBase('before');
      const first = await build([`--base=${base}`, `--push=${target}`], cwd, env);
      expect(first.stdout).toMatch(new RegExp(`^${target}@sha256:[0-9a-f]{64}\n$`));
      expect(lock()).toEqual({ bases: { [base]: before } });

      // The tag moves, and the digest stays until somebody wants the new one.
      const after = await pushBase('after');
      const again = await build([`--base=${base}`, `--push=${target}`, '--output=json'], cwd, env);
      const result = JSON.parse(again.stdout) as { reference: string; base: unknown; platforms: unknown[] };
      expect(`${result.reference}\n`).toBe(first.stdout);
      expect(result.base).toEqual({ name: base, digest: before });
      expect(result.platforms).toHaveLength(2);
      const updated = await build([`--base=${base}`, `--push=${target}`, '--update-base'], cwd, env);
      expect(updated.stdout).not.toBe(first.stdout);
      expect(lock()).toEqual({ bases: { [base]: after } });

      const crane = (...args: readonly string[]): Buffer =>
        execFileSync(goTool('crane'), args, { env: { ...process.env, ...env }, maxBuffer: 1e9 });
      const files = execFileSync('tar', ['-t'], { input: crane('export', target, '-'), encoding: 'utf8' });
      expect(files.split('\n')).toEqual(expect.arrayContaining(['bin/node', 'operator.cjs']));
      const config = crane('config', '--platform=linux/arm64', target).toString();
      expect(JSON.parse(config)).toMatchObject({
        architecture: 'arm64',
        config: { Labels: { 'org.opencontainers.image.title': 'kindred operator' } },
      });
      const refused = await kindred([`--base=${base}`, `--push=${target}`], cwd, { ...env, DOCKER_CONFIG: folder });
      expect(refused).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`run: docker login ${closed.host}`) as string,
      });
      for (const { stdout, stderr } of [first, again, updated, refused]) {
        for (const secret of [user.password, auth]) expect(stdout + stderr).not.toContain(secret);
      }
    } finally {
      await registry.close();
      await Promise.all([open.end(), closed.end()]);
    }
  });
});

(noContainers === undefined ? describe : describe.skip)('the image on the Node.js of this machine', () => {
  const image = `docker.io/library/kindred-operator:${version}`;
  const provisioner = `docker.io/library/kindred-provisioner:${version}`;
  let containerd: Containerd;
  beforeAll(async () => {
    containerd = await startContainerd(join(folder, 'containerd'));
    const archive = join(folder, 'operator.tar');
    await build(['--base=local', `--archive=${archive}`], folder);
    expect(containerd.import(archive)).toEqual([image]);
  });
  afterAll(() => containerd.end());

  test('starts the operator, as a user that is not root', async () => {
    const started = await containerd.run(image);
    // There is no cluster around it.
    expect(started.output).toMatch(/kindred-operator/);
    expect(started.code).toBe(1);
    const script = 'console.log(process.getuid(), os.userInfo().username, fs.statSync("/tmp").mode.toString(8))';
    expect((await containerd.run(image, ['/usr/local/bin/node', '-e', script])).output).toBe('65532 nonroot 41777\n');
  });

  test('finds hosts by DNS, and checks certificates', async () => {
    const authority = new CertificateAuthority('of the test');
    const { certificate, key } = authority.server('kindred.test', ['kindred.test']);
    const tls = createServer({ cert: certificate, key }, (socket) => socket.end('hello'));
    tls.listen(0, '127.0.0.1');
    await once(tls, 'listening');
    const names = await startNameServer('127.0.0.53', '127.0.0.1');
    const mounted = { '/etc/resolv.conf': join(folder, 'resolv.conf'), '/ca.pem': join(folder, 'ca.pem') };
    writeFileSync(mounted['/etc/resolv.conf'], 'nameserver 127.0.0.53\noptions timeout:5\n');
    writeFileSync(mounted['/ca.pem'], authority.certificate);
    for (const file of Object.values(mounted)) chmodSync(file, 0o644);
    const script = `
      const ca = [fs.readFileSync('/etc/ssl/certs/ca-certificates.crt', 'utf8'), fs.readFileSync('/ca.pem', 'utf8')];
      dns.lookup('kindred.test', (error, address) => console.log(error ?? address));
      dns.lookup('other.test', (error) => console.log(error?.code));
      const connect = (ca) => {
        const socket = tls.connect({ host: 'kindred.test', port: ${(tls.address() as AddressInfo).port}, ca });
        socket.on('data', (data) => console.log(String(data))).on('error', (error) => console.log(error.code));
      };
      connect(ca);
      connect(ca.slice(0, 1));`;
    try {
      const { output } = await containerd.run(image, ['/usr/local/bin/node', '-e', script], mounted);
      expect(output.trim().split('\n').toSorted()).toEqual([
        '127.0.0.1',
        'ENOTFOUND',
        'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
        'hello',
      ]);
    } finally {
      names.close();
      tls.close();
    }
  });

  test('of the provisioner has a shell, an SSH client and the programs that are given', async () => {
    const archive = join(folder, 'provisioner.tar');
    const rke = join(folder, 'rke');
    writeFileSync(rke, '#!/bin/sh\necho rke version v1.8.14\n');
    const given = ['--operator=provisioner', '--base=local', `--binary=rke=${rke}`];
    await build([...given, `--archive=${archive}`], folder);
    expect(containerd.import(archive)).toContain(provisioner);
    const shown = await containerd.run(provisioner, ['/bin/sh', '-c', 'rke --version; ssh -V; id -un']);
    expect(shown.output).toMatch(/^rke version v1\.8\.14\nOpenSSH_.*\nnonroot\n$/);
    expect((await containerd.run(provisioner)).output).toMatch(/kindred-provisioner/);
    const wrong = [...given.slice(0, 2), `--binary=rke=${rke}#sha256:${'0'.repeat(64)}`];
    expect(await kindred(wrong, folder)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/rke from .* has the checksum sha256:/) as string,
    });
  });
});

/** Answers questions for `kindred.test` with an IPv4 address, and denies every other name. */
async function startNameServer(host: string, address: string): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.on('message', (query, { address: to, port }) => {
    const end = query.indexOf(0, 12);
    const question = query.subarray(12, end + 5);
    const isKnown = question.includes('\x07kindred\x04test\x00');
    const isIPv4 = question.readUInt16BE(question.length - 4) === 1;
    const answers = isKnown && isIPv4 ? 1 : 0;
    const header = Buffer.from([0, 0, 0x81, isKnown ? 0x80 : 0x83, 0, 1, 0, answers, 0, 0, 0, 0]);
    query.copy(header, 0, 0, 2);
    const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split('.').map(Number)]);
    socket.send(Buffer.concat([header, question, ...(answers === 1 ? [answer] : [])]), port, to);
  });
  socket.bind(53, host);
  await once(socket, 'listening');
  return socket;
}
