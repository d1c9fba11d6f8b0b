import { z } from 'zod';
import { cel, withRule } from '../../../constructs';
import { defineKind } from '../../../constructs/kind/kind';
import { renderChildren } from '../../../constructs/kind/render';
import { InvalidObjectError, RenderError } from '../../../constructs/kube/errors';
import { callKindFunction, describeThrown, KindFunctionError } from '../../../constructs/kube/function-error';

const here = 'function-error.test.ts';

/** What a function throws that is called for an object. */
function failure(call: () => unknown): KindFunctionError {
  try {
    callKindFunction('Website team/site', 'Website.children', call);
  } catch (error) {
    if (error instanceof KindFunctionError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

function readMissing(spec: { readonly options?: { readonly x: string } }): string {
  return spec.options!.x;
}

describe('what a function of a kind throws', () => {
  it('is reported with the function, the error, and the line of the source', () => {
    const error = failure(() => readMissing({}));
    expect(error.message).toMatch(
      /^Website team\/site: Website\.children: TypeError: Cannot read properties of undefined \(reading 'x'\) \(function-error\.test\.ts:\d+:\d+\)$/,
    );
    expect(error.message).toContain(error.summary);
    expect(error.summary).toMatch(/^Website\.children: TypeError/);
    expect(error).toBeInstanceOf(RenderError);
  });

  it('keeps its stack and its causes', () => {
    const { stack = '' } = failure(() => {
      throw new Error('outer', { cause: new RangeError('inner') });
    });
    const [first = '', second = ''] = stack.split('\n');
    expect(first).toMatch(/^KindFunctionError: Website team\/site: Website\.children: Error: outer/);
    expect(second).toMatch(new RegExp(`^ {4}at .*/${here}:\\d+:\\d+\\)?$`));
    expect(stack).toContain('caused by: RangeError: inner');
  });

  it('names the innermost line of the project when a package threw', () => {
    const { summary } = failure(() => z.string().parse(1));
    expect(summary).toMatch(new RegExp(`^Website\\.children: ZodError: .* \\(${here}:\\d+:\\d+\\)$`));
  });

  it('names no line of what called the function', () => {
    const fromPackage = new Error('made elsewhere');
    // As a kind's package has it.
    fromPackage.stack = [
      'Error: made elsewhere',
      '    at fail (/app/node_modules/some/index.js:1:1)',
      '    at callKindFunction (/elsewhere/function-error.ts:1:1)',
      '    at render (/app/render.ts:1:1)',
    ].join('\n');
    expect(describeThrown(fromPackage)).toBe('Error: made elsewhere');
  });

  it.each([
    ['text', 'Website.children: text'],
    [undefined, 'Website.children: undefined'],
    [{ message: 'a message' }, 'Website.children: a message'],
    [Object.assign(new Error('m'), { stack: undefined }), 'Website.children: Error: m'],
  ])('may be anything: %p', (thrown, summary) => {
    const error = failure(() => {
      // oxlint-disable-next-line typescript/only-throw-error
      throw thrown;
    });
    expect([error.summary, error.cause]).toEqual([summary, thrown]);
  });

  it('has the first line of its message, and all problems of an object', () => {
    const thrower = (error: Error) => () => {
      throw error;
    };
    expect(failure(thrower(new Error('one\ntwo'))).summary).toMatch(/^Website\.children: Error: one \(/);
    const invalid = new InvalidObjectError('HelloApp a', [{ path: 'spec.image', message: 'is required' }]);
    expect(failure(thrower(invalid)).summary).toContain('HelloApp a is invalid:\n  spec.image: is required (');
  });

  it('stays as it is if it says what is wrong with the children already', () => {
    const known = new RenderError('Website team/site', 'it renders two');
    expect(() =>
      callKindFunction('x', 'y', () => {
        throw known;
      }),
    ).toThrow(known);
  });
});

describe('functions of a kind', () => {
  const Website = defineKind({
    ...{ group: 'example.com', version: 'v1', kind: 'Website', plural: 'websites', scope: 'Namespaced' },
    description: 'A website.',
    spec: z.object({
      size: withRule(z.int32().describe('S.'), cel('self != 13', 'must not be 13'), (size) => {
        if (size === 13) throw new RangeError('no such size');
        return true;
      }),
    }),
    owns: [],
    shared: [
      {
        ...{ name: 'common', owns: [], children: () => undefined },
        key: () => {
          throw new Error('no key');
        },
      },
    ],
    children: (_, { spec }) => {
      if (spec.size > 1) throw new Error('too large');
    },
  });
  const website = (size: number) => ({
    ...{ apiVersion: 'example.com/v1', kind: 'Website', metadata: { name: 'w', namespace: 'n' } },
    spec: { size },
  });

  it.each([
    [2, /^Website n\/w: Website\.children: Error: too large \(.*:\d+:\d+\)$/],
    [13, /^Website n\/w: Website\.spec: RangeError: no such size \(.*:\d+:\d+\)$/],
  ])('are named: size %d', (size, message) => {
    expect(() => renderChildren(Website, website(size))).toThrow(message);
  });
});
