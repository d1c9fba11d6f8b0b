import { Agent, request } from 'undici';
import { z } from 'zod';
import { DevConversion } from '../../cli/dev-conversion';
import { crdManifest } from '../../constructs/crd';
import { defineKind, type AnyKind } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { CertificateAuthority } from '../../local/certificates';
import { temporaryFolder } from '../support/temporary-folder';

const authority = new CertificateAuthority('test');
const agent = new Agent({ connect: { ca: authority.certificate } });
const printed: string[] = [];
let conversion: DevConversion;

beforeEach(() => {
  printed.length = 0;
  const folder = temporaryFolder('kindred-dev-conversion-');
  conversion = new DevConversion({ authority, folder, print: (line) => printed.push(line) });
});
afterEach(() => conversion.stop());
afterAll(() => agent.close());

const text = z.string().max(99).describe('The text.');

/** A kind whose own version is the first of these; of each other one the text gets a suffix on its way to the own one. */
function note(suffix: string, version: string, ...others: readonly string[]): AnyKind {
  return defineKind({
    ...{ group: 'notes.example.com', version, kind: 'Note', plural: 'notes', scope: 'Namespaced' },
    ...{ description: 'A note.', owns: [], children: () => undefined, spec: z.object({ text }) },
    versions: others.map((other) => ({
      ...{ version: other, spec: z.object({ text }), fromCurrent: (spec: { text: string }) => spec },
      toCurrent(spec: { text: string }) {
        if (suffix === 'throws') throw new Error('not today');
        return { text: spec.text + suffix };
      },
    })),
  });
}

const crdOf = (kind: AnyKind): KubeObject => {
  const service = { name: 'unused', namespace: 'unused' };
  const caBundle = Buffer.from(authority.certificate).toString('base64');
  return crdManifest(kind, { conversionWebhook: { service, caBundle } });
};

const serve = (...kinds: readonly AnyKind[]) => conversion.serve({ kinds, objects: kinds.map(crdOf) });

interface Webhook {
  readonly conversion: {
    readonly webhook: { readonly clientConfig: { readonly url: string; readonly service?: object } };
  };
}

/** What the webhook of a CRD makes of an object, as the API server asks. @returns its text, or why it is not converted */
async function convert({ spec }: KubeObject, from: string, to: string): Promise<string> {
  const { url, service } = (spec as Webhook).conversion.webhook.clientConfig;
  expect(service).toBeUndefined();
  const object = {
    ...{ apiVersion: `notes.example.com/${from}`, kind: 'Note', metadata: { name: 'a' }, spec: { text: 'a' } },
  };
  const review = {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview' },
    request: { uid: '1', desiredAPIVersion: `notes.example.com/${to}`, objects: [object] },
  };
  const { body } = await request(url, {
    ...{ dispatcher: agent, method: 'POST', headers: { 'content-type': 'application/json' } },
    body: JSON.stringify(review),
  });
  const { response } = (await body.json()) as {
    readonly response: {
      readonly result: { readonly message?: string };
      readonly convertedObjects?: readonly [{ readonly spec: { readonly text: string } }];
    };
  };
  return response.convertedObjects?.[0].spec.text ?? response.result.message ?? '';
}

test('kinds of one version are served by nobody, and their objects stay as they are', async () => {
  const objects = [crdManifest(note('', 'v1'))];
  expect((await conversion.serve({ kinds: [note('', 'v1')], objects })).objects).toBe(objects);
});

describe('a kind of two versions', () => {
  let crd: KubeObject;
  beforeEach(async () => {
    const { objects, accept } = await serve(note('!', 'v2', 'v1'));
    accept();
    crd = objects[0] as KubeObject;
  });

  test('is converted by the next definition as soon as that is served', async () => {
    expect(await convert(crd, 'v1', 'v2')).toBe('a!');
    await serve(note('?', 'v2', 'v1'));
    expect(await convert(crd, 'v1', 'v2')).toBe('a?');
  });

  test('keeps what the next definition lacks until that is accepted', async () => {
    const { accept } = await serve(note('?', 'v3', 'v2'));
    expect(await convert(crd, 'v2', 'v3')).toBe('a?');
    expect(await convert(crd, 'v1', 'v2')).toBe('a!');
    accept();
    expect(await convert(crd, 'v1', 'v2')).toContain('Note has no notes.example.com/v1');
  });

  test('is converted by the former definition again when the next one is rejected, and by the rejected one where only that can', async () => {
    const { reject } = await serve(note('?', 'v3', 'v2', 'v1'));
    reject();
    expect(await convert(crd, 'v1', 'v2')).toBe('a!');
    expect(await convert(crd, 'v2', 'v3')).toBe('a?');
  });

  test('keeps a rejected definition whose CRD may have been applied, until one of its kind is accepted', async () => {
    (await serve(note('?', 'v3', 'v2', 'v1'))).reject();
    const { accept, reject } = await serve(note('#', 'v2', 'v1'));
    expect(await convert(crd, 'v2', 'v3')).toBe('a?');
    reject();
    expect(await convert(crd, 'v2', 'v3')).toBe('a?');
    expect(await convert(crd, 'v1', 'v2')).toBe('a!');
    accept();
    expect(await convert(crd, 'v2', 'v3')).toContain('Note has no notes.example.com/v3');
  });

  test('is served on when it has left the project, since its CRD stays', async () => {
    const { accept } = await serve();
    accept();
    expect(await convert(crd, 'v1', 'v2')).toBe('a!');
  });

  test('whose conversion fails is told once for each definition', async () => {
    for (const _ of [1, 2]) {
      (await serve(note('throws', 'v2', 'v1'))).accept();
      for (const __ of [1, 2, 3]) expect(await convert(crd, 'v1', 'v2')).toContain('not today');
    }
    const line = expect.stringMatching(
      /^Conversion webhook: an object cannot be converted: Note a .*\n.* not today \(dev-conversion\.test\.ts:\d+:\d+\)$/,
    ) as string;
    expect(printed).toEqual([line, line]);
  });
});

test('a folder that cannot be written fails the save, not those after it', async () => {
  const folder = temporaryFolder('kindred-dev-conversion-');
  const broken = new DevConversion({ authority, folder: `${folder}/\0`, print: () => undefined });
  const given = { kinds: [note('', 'v2', 'v1')], objects: [] };
  await expect(broken.serve(given)).rejects.toThrow();
  await expect(broken.serve(given)).rejects.toThrow();
  await expect(broken.stop()).resolves.toBeUndefined();
});
