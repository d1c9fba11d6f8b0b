import { parseArguments } from '../../cli/arguments';
import { DEFAULT_BASE, baseOf } from '../../cli/build-arguments';
import { UsageError } from '../../cli/errors';

const digest = `sha256:${'0'.repeat(64)}`;

function buildArguments(...args: readonly string[]): Extract<ReturnType<typeof parseArguments>, { command: 'build' }> {
  const parsed = parseArguments(['build', ...args]);
  if (parsed.command !== 'build') throw new Error(`it is ${parsed.command}`);
  return parsed;
}

test('no base is named, so that the operator decides; the default one has a tag, and no digest', () => {
  expect(buildArguments('--operator=provisioner')).toMatchObject({ base: undefined, operator: 'provisioner' });
  expect(baseOf(DEFAULT_BASE)).toMatchObject({ type: 'registry', reference: { tag: 'nonroot', digest: undefined } });
});

test('platforms may be repeated or separated by commas', () => {
  const { platforms } = buildArguments('--platform=linux/amd64,linux/arm64/v8', '--platform=linux/amd64');
  expect(platforms).toEqual([
    { os: 'linux', architecture: 'amd64' },
    { os: 'linux', architecture: 'arm64', variant: 'v8' },
  ]);
});

test('a binary is a file, or a URL with a checksum', () => {
  const url = 'https://example.com/rke_linux-amd64';
  expect(buildArguments('--binary=rke=bin/rke', `--binary=ssh=${url}#${digest}`).binaries).toEqual([
    { name: 'rke', from: 'bin/rke', digest: undefined },
    { name: 'ssh', from: url, digest },
  ]);
});

test('a base is a reference, an OCI layout or this machine', () => {
  expect(buildArguments('--base=oci:some/dir:tag').base).toEqual({ type: 'oci', folder: 'some/dir:tag' });
  expect(buildArguments('--base=local').base).toEqual({ type: 'local' });
  expect(buildArguments('--base=node:22').base).toMatchObject({ reference: { repository: 'library/node', tag: '22' } });
});

test.each([
  [['--binary=x=https://example.com/x'], /a URL needs the checksum/],
  [['--binary=x=http://example.com/x'], /the URL must begin with https/],
  [['--binary=x=file#sha256:12'], /there must be sha256: and 64 hexadecimal digits/],
  [['--binary=x'], /give NAME=FILE/],
  [[`--binary=x=https://me:s3cret@example.com/x#${digest}`], /without a user or a password/],
  [[`--binary=x=https://#${digest}`], /give a URL with a host/],
  [['--plain-http=http://example.com'], /give the host of a registry/],
  [['--base=oci:'], /name the folder too/],
  [['--base=Upper/case'], /--base: "Upper\/case" is not the reference of an image/],
  [['--push=Upper/case'], /--push: "Upper\/case" is not the reference of an image/],
  [['--push=me:s3cret@example.com/x'], /--push: the reference is not the reference of an image: credentials/],
  [[`--push=example.com/x@${digest}`], /--push: leave the digest out/],
  [[`--tag=example.com/x@${digest}`], /--tag: leave the digest out/],
  [['--platform=windows/amd64'], /--platform=windows\/amd64: give one such as linux\/amd64/],
  [['--base=local', '--update-base'], /--update-base is only for a base with a tag/],
  [[`--base=node@${digest}`, '--update-base'], /--update-base is only for a base with a tag/],
  [['--label=x'], /give KEY=VALUE/],
  [['--output=yaml'], /Allowed choices are text, json\. See: kindred help build$/],
])('%j is a usage error', (args, message) => {
  expect(() => buildArguments(...args)).toThrow(UsageError);
  expect(() => buildArguments(...args)).toThrow(message);
  expect(() => buildArguments(...args)).not.toThrow(/s3cret/);
});
