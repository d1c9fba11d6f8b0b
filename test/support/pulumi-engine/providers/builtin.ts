import type { ProviderPackage } from '../provider';
import type { Values } from '../values';

/**
 * What the real engine provides itself: `Stash`, which keeps the first value that it was given as `output` until it is replaced, and shows
 * the latest one as `input` (pkg/resource/deploy/builtins.go).
 */
export const builtin: ProviderPackage = {
  name: 'pulumi',
  configure: () => ({
    check: ({ type, inputs }) => Promise.resolve({ inputs, failures: problems(type, inputs) }),
    create: ({ name, inputs }) => Promise.resolve({ id: name, outputs: stashed(inputs, inputs) }),
    update: ({ inputs, oldOutputs }) => Promise.resolve({ outputs: stashed(inputs, oldOutputs, 'output') }),
    delete: () => Promise.resolve(),
    preview: ({ inputs, old }) =>
      Promise.resolve(old === undefined ? stashed(inputs, inputs) : stashed(inputs, old.outputs, 'output')),
  }),
};

function stashed(inputs: Values, from: Values, key: 'input' | 'output' = 'input'): Values {
  return { input: inputs.input!, output: from[key]! };
}

function problems(type: string, inputs: Values): string[] {
  if (type !== 'pulumi:index:Stash') return [`unrecognized resource type '${type}'`];
  if (inputs.input === undefined) return ['missing required property "input"'];
  return Object.keys(inputs).flatMap((key) => (key === 'input' ? [] : [`unknown property "${key}"`]));
}
