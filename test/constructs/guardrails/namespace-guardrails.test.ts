import { App, Chart } from 'cdk8s';
import {
  NamespaceGuardrails,
  guardrailProblems,
  type NamespaceGuardrailsProps,
} from '../../../constructs/guardrails/namespace-guardrails';

function synth(props: Partial<NamespaceGuardrailsProps> = {}): unknown {
  const chart = new Chart(new App(), 'test');
  new NamespaceGuardrails(chart, 'guardrails', { namespace: 'team-a', ...props });
  return chart.toJson();
}

const metadata = (name: string): unknown => ({
  name,
  namespace: 'team-a',
  labels: { 'my-domain-ops-controller-make': 'true' },
});

describe('NamespaceGuardrails', () => {
  test('the numbers', () => {
    expect(synth()).toEqual([
      {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: metadata('default-resource-quota'),
        spec: {
          hard: { 'requests.cpu': '88', 'limits.cpu': '352', 'requests.memory': '112Gi', 'limits.memory': '448Gi' },
        },
      },
      {
        apiVersion: 'v1',
        kind: 'LimitRange',
        metadata: metadata('default-limit-range'),
        spec: {
          limits: [
            {
              type: 'Container',
              default: { cpu: '400m', memory: '2Gi' },
              defaultRequest: { cpu: '100m', memory: '500Mi' },
              max: { cpu: '2', memory: '8Gi' },
            },
          ],
        },
      },
    ]);
  });

  test('a number that is undefined keeps its default', () => {
    const numbers = { quota: { 'requests.cpu': undefined }, containers: { max: { cpu: undefined } } };
    expect(synth(numbers as Partial<NamespaceGuardrailsProps>)).toEqual(synth());
  });

  test('numbers are written as quantities', () => {
    const written = { quota: { 'requests.cpu': '88' }, containers: { max: { cpu: '2.5' } } };
    expect(synth({ quota: { 'requests.cpu': 88 }, containers: { max: { cpu: 2.5 } } })).toEqual(synth(written));
  });

  test('one number is overridden, the others stay', () => {
    expect(synth({ quota: { 'requests.cpu': '16' }, containers: { max: { memory: '16Gi' } } })).toMatchObject([
      { spec: { hard: { 'requests.cpu': '16', 'limits.cpu': '352' } } },
      { spec: { limits: [{ max: { cpu: '2', memory: '16Gi' }, default: { cpu: '400m' } }] } },
    ]);
  });

  test('further labels do not replace the one that marks them', () => {
    expect(synth({ labels: { team: 'a', 'my-domain-ops-controller-make': 'no' } })).toMatchObject([
      { metadata: { labels: { team: 'a', 'my-domain-ops-controller-make': 'true' } } },
      {},
    ]);
  });

  test.each([
    [{ quota: { 'limits.cpu': '8 cores' } }, 'quota["limits.cpu"]: "8 cores" is no quantity'],
    [{ containers: { max: { memory: '-1Gi' } } }, 'containers.max.memory: "-1Gi" is no quantity'],
    [{ containers: { max: { memory: -1 } } }, 'containers.max.memory: "-1" is no quantity'],
    [{ quota: { 'limits.cpu': true } }, 'quota["limits.cpu"]: it must be a quantity, such as 2, 400m or 8Gi'],
    [{ quota: { pods: '8' } }, 'quota.pods: is no field of it; it has requests.cpu, limits.cpu, requests.memory'],
    [{ quota: 8 }, 'quota: it must be an object of requests.cpu, limits.cpu, requests.memory, limits.memory'],
    [{ containers: { min: {} } }, 'containers.min: is no field of it; it has defaultRequest, default, max'],
    [{ containers: { max: '8' } }, 'containers.max: it must be an object of cpu, memory'],
    [
      { containers: { max: { cpu: '200m' } } },
      'containers.max.cpu: the API server refuses such a LimitRange: defaultRequest 100m (left out), default 400m (left out), max 200m; none',
    ],
    [{ containers: { defaultRequest: { cpu: '0.5' } } }, 'containers.defaultRequest.cpu: the API server refuses'],
    [
      { containers: { default: { memory: '9Gi' }, max: { cpu: '8' } } },
      'defaultRequest 500Mi (left out), default 9Gi, max 8Gi (left out)',
    ],
  ])('refuses %j', (props, message) => {
    // As YAML or JavaScript may pass them, whatever the type says.
    expect(() => synth(props as Partial<NamespaceGuardrailsProps>)).toThrow(message);
  });

  test.each([
    { max: { cpu: '400m', memory: '2048Mi' } },
    { default: { cpu: '0.1' } },
    { max: { cpu: '200m' }, default: { cpu: '200m' } },
    { max: { cpu: '0' }, default: { cpu: '0' }, defaultRequest: { cpu: '0' } },
  ])('takes %j: no number is more than the next', (containers) => {
    expect(() => synth({ containers })).not.toThrow();
  });

  test('what is wrong is said of each resource, once, and not of what is no quantity', () => {
    const containers = { max: { cpu: '1m', memory: 'much' }, default: { cpu: '2', memory: '1Ki' } };
    expect(guardrailProblems({ containers }).map(({ path }) => path)).toEqual([
      'containers.max.memory',
      'containers.max.cpu',
    ]);
  });
});
