import type { KubeObject } from '../../../constructs/kube/kube-object';
import { review, parseReview } from '../../../operator/webhook/conversion-review';
import { Shop } from '../../constructs/kind/versions-kind';

function shop(version: string, spec: unknown, name = 'corner'): KubeObject {
  return { apiVersion: `test.example.com/${version}`, kind: 'Shop', metadata: { name, namespace: 'default' }, spec };
}

function answerTo(objects: readonly KubeObject[], desiredAPIVersion = 'test.example.com/v1') {
  return review([Shop], { uid: 'u', desiredAPIVersion, objects });
}

describe('review', () => {
  it('converts every object, in the order of the request', () => {
    const { answer, kind, bug } = answerTo([shop('v1beta1', { image: 'a', replicas: 2 }), shop('v1', { image: 'b' })]);
    expect(answer).toEqual({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'ConversionReview',
      response: {
        uid: 'u',
        result: { status: 'Success' },
        convertedObjects: [shop('v1', { image: 'a', size: 2 }), shop('v1', { image: 'b' })],
      },
    });
    expect([kind, bug]).toEqual([Shop, undefined]);
  });

  it('fails as a whole on one object, with its name and field', () => {
    const { answer, bug } = answerTo([shop('v1beta1', { image: 'a' }), shop('v1beta1', { image: 3 }, 'bad')]);
    expect(answer.response).toEqual({
      uid: 'u',
      result: { status: 'Failed', message: expect.stringContaining('Shop default/bad cannot be') as string },
    });
    expect(JSON.stringify(answer)).toContain('spec.image');
    expect(bug).toBeUndefined();
  });

  it('refuses kinds and versions that it does not know', () => {
    const messageOf = (result: ReturnType<typeof answerTo>) => JSON.stringify(result.answer.response.result);
    const other = { ...shop('v1', {}), kind: 'Other' };
    expect(messageOf(answerTo([other]))).toContain('this operator does not run the kind Other of test.example.com');
    expect(messageOf(answerTo([shop('v1', { image: 'a' })], 'test.example.com/v9'))).toContain(
      'has no test.example.com/v9',
    );
  });

  it('answers in its own words when the code fails, and hands the error on for the log', () => {
    const broken = {
      ...shop('v1beta1', {}),
      get spec(): never {
        throw new Error('secret');
      },
    };
    const { answer, bug } = answerTo([broken]);
    expect(answer.response.result).toEqual({
      status: 'Failed',
      message:
        "Shop default/corner cannot be converted to test.example.com/v1: an error of the operator's own; see its log",
    });
    expect(String(bug)).toContain('secret');
  });
});

describe('reviewRequestOf', () => {
  const { apiVersion, kind } = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview' };
  const request = { uid: 'u', desiredAPIVersion: 'test.example.com/v1', objects: [shop('v1', {})] };

  it('takes a review apart', () => {
    expect(parseReview({ apiVersion, kind, request })).toEqual(request);
  });

  it.each<[string, unknown]>([
    ['a ConversionReview of apiextensions.k8s.io/v1 is expected', null],
    ['a ConversionReview of apiextensions.k8s.io/v1 is expected', []],
    [
      'a ConversionReview of apiextensions.k8s.io/v1 is expected',
      { apiVersion: 'apiextensions.k8s.io/v1beta1', kind, request },
    ],
    ['a ConversionReview of apiextensions.k8s.io/v1 must have a request', { apiVersion, kind }],
    ['request.uid must be a string', { apiVersion, kind, request: { ...request, uid: 1 } }],
    [
      'request.desiredAPIVersion must be a string',
      { apiVersion, kind, request: { ...request, desiredAPIVersion: {} } },
    ],
    ['request.objects must be a list', { apiVersion, kind, request: { ...request, objects: {} } }],
    [
      'request.objects[1] must be',
      { apiVersion, kind, request: { ...request, objects: [shop('v1', {}), { kind: 'Shop' }] } },
    ],
    ['request.objects[0] must be', { apiVersion, kind, request: { ...request, objects: [null] } }],
  ])('%s', (message, body) => {
    expect(parseReview(body)).toContain(message);
  });
});
