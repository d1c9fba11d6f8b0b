import { setTimeout as sleep } from 'node:timers/promises';
import { HelloApp } from '../../../constructs';
import { KindComponent, PlatformComponent } from '../../../stacks/components';
import { named, run } from '../bridge/engine';
import { KUBECONFIG, ObservedCluster } from '../memory-cluster';
import { operators, program } from './small-platform';

// Monitoring that is switched on and off is in waiting.slow.test.ts.

describe('monitoring without the Prometheus operator', () => {
  const both = ['podmonitors.monitoring.coreos.com', 'prometheusrules.monitoring.coreos.com'];

  test.each(['preview', 'up'] as const)('fails at once in %s, and names the CRD', async (way) => {
    const { engine, done } = new ObservedCluster({ crds: [both[0]!] });
    await expect(engine[way](program({ monitoring: {} }))).rejects.toThrow(
      /kindred\/needs-the-prometheus-operator\/prometheusrules\.monitoring\.coreos\.com/,
    );
    expect(done.filter((name) => name.includes('monitor'))).toEqual([]);
  });

  test('is not looked for in a preview while what the platform depends on is still to be made', async () => {
    const { engine } = new ObservedCluster();
    const after = () => {
      const first = new PlatformComponent('first', { kubeconfig: KUBECONFIG, operators });
      new PlatformComponent('kindred', { kubeconfig: KUBECONFIG, operators, monitoring: {} }, { dependsOn: [first] });
      return {};
    };
    await engine.preview(after);
    await expect(engine.up(after)).rejects.toThrow(/needs-the-prometheus-operator/);
  });
});

describe('how long is waited', () => {
  test('for an operator is said once, in seconds', async () => {
    const registrations = await run(program({ timeoutSeconds: 90 }));
    const { timeouts } = named(registrations, 'kindred/operators/operator/deployment');
    expect(timeouts).toEqual(['90s', '90s', '90s']);
  });

  const web = (timeoutSeconds: number) => () => {
    const metadata = { name: 'web', namespace: 'shop' };
    new KindComponent('web', { kind: HelloApp, metadata, spec: { image: 'nginx:1' }, timeoutSeconds });
    return {};
  };

  test('halfway to the end of its time, it is said where to look', async () => {
    const { engine } = new ObservedCluster({ slow: () => sleep(1000) });
    expect((await engine.preview(web(1))).log).toEqual([]);
    const { log } = await engine.up(web(1));
    expect(log.filter(({ severity }) => severity === 'warning')).toEqual([
      {
        severity: 'warning',
        urn: expect.stringMatching(/kindred:kinds:KindComponent::web$/) as string,
        message:
          'HelloApp web is not Ready after 0.5 s; Pulumi waits 1 s in all. Its conditions say why: ' +
          'kubectl describe -n shop helloapps.apps.anupam.com web. If it has none, its operator does not run: ' +
          'kubectl get pods -A -l app.kubernetes.io/part-of=kindred',
      },
    ]);
  });

  test('nothing is said of what becomes Ready in time', async () => {
    const { engine } = new ObservedCluster();
    expect((await engine.up(web(1))).log).toEqual([]);
    await sleep(600);
    expect((await engine.up(web(1))).log).toEqual([]);
  });
});
