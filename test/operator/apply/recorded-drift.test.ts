import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ApiClient, ApplyOptions, PatchOptions } from '../../../operator/client/api-client';
import { ApiError } from '../../../operator/client/errors';
import { ChildWriter, contentOf } from '../../support/drift/child-writer';
import { richChildren } from '../../support/drift/children';
import { namedChanges, type RecordedAnswer, type Recording } from '../../support/drift/named-changes';
import recorded from '../../support/drift/recorded-answers.json';

const { created: allCreated, answers } = recorded as unknown as Recording;

/** Gives the recorded answers to the requests of one child. */
function replay({ kind, live, dryRun }: RecordedAnswer): ApiClient {
  const first = allCreated[kind];
  if (first === undefined) throw new Error(`there is no ${kind} in the recording`);
  // The changed object's identity: each change was made to a child of its own.
  const { uid, resourceVersion } = live.metadata;
  const created = {
    ...first,
    metadata: { ...first.metadata, uid, resourceVersion: String(Number(resourceVersion) - 1) },
  };
  let standing = dryRun;
  let version = Number(live.metadata.resourceVersion);
  const stored = (object: KubeObject): KubeObject => {
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } };
  };
  const client: Pick<ApiClient, 'create' | 'patch' | 'apply'> = {
    create: () => Promise.resolve(created),
    patch: (_type, _ref, _body, { type }: PatchOptions) => {
      // A merge patch replaces the lists, after which an apply is valid.
      if (type === 'merge') standing = created;
      return Promise.resolve(stored(type === 'merge' ? created : live));
    },
    apply: (_type, _body, options: ApplyOptions) => {
      const invalid = { code: 422, reason: 'Invalid', message: 'invalid', causes: [] };
      if (standing === null) return Promise.reject(new ApiError(invalid, 'PATCH'));
      return Promise.resolve(options.dryRun === true ? standing : stored(standing));
    },
  };
  return client as ApiClient;
}

async function writerOf(answer: RecordedAnswer): Promise<ChildWriter> {
  const child = richChildren('default').find(({ type }) => type.kind === answer.kind);
  if (child === undefined) throw new Error(`there is no rich ${answer.kind}`);
  const writer = new ChildWriter(replay(answer), child);
  expect((await writer.write()).result).toBe('created');
  await writer.write();
  expect(writer.asked).toEqual([]);
  return writer;
}

function isChangedByApply({ live, dryRun }: RecordedAnswer): boolean {
  return dryRun === null || !isDeepStrictEqual(contentOf(live), contentOf(dryRun));
}

test('each named change has its recorded answer, and both verdicts occur', () => {
  const title = ({ kind, what }: { readonly kind: string; readonly what: string }): string => `${kind}: ${what}`;
  expect(answers.map(title)).toEqual(namedChanges.map(title));
  expect(new Set(answers.map(isChangedByApply)).size).toBe(2);
  expect(new Set(answers.map(({ kind }) => kind)).size).toBe(18);
});

describe.each(answers.map((answer) => [`${answer.kind}: somebody ${answer.what}`, answer] as const))(
  '%s',
  (_, answer) => {
    const verdict = isChangedByApply(answer);

    test(`the operator writes ${verdict ? 'once' : 'nothing'}, and is then at rest`, async () => {
      const writer = await writerOf(answer);
      writer.observe(answer.live);
      expect((await writer.write()).result).toBe(verdict ? 'applied' : 'unchanged');
      expect(writer.wrote).toBe(verdict);
      await writer.write();
      expect(writer.asked).toEqual([]);
    });

    test('after a restart too', async () => {
      const writer = await writerOf(answer);
      writer.restart(answer.live);
      await writer.write();
      expect(writer.wrote).toBe(verdict);
      await writer.write();
      expect(writer.asked).toEqual([]);
    });
  },
);
