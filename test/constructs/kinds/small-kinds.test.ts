import { crdManifest } from '../../../constructs/crd';
import { CronTab, DemoMicroService, Foo, HelloApp, SampleResource } from '../../../constructs/kinds';
import { withDefaults } from '../../../constructs/kind/render';
import { validateObject } from '../../../constructs/kind/validate';
import type { AnyKind } from '../../../constructs/kind/kind';
import { childOf, objectOf, observed, titlesOf, wrongPaths } from './support';

function nameKept(kind: AnyKind, name: string, spec?: object): boolean {
  try {
    validateObject(kind, objectOf(kind, name, spec));
    return true;
  } catch {
    return false;
  }
}

describe('HelloApp', () => {
  const spec = { image: 'i', size: 3 };

  it('runs size pods of its image, labelled with its name', () => {
    expect(childOf(HelloApp, objectOf(HelloApp, 'a.b', spec), 'Deployment', 'a.b')).toMatchObject({
      metadata: { labels: { app: 'a.b' } },
      spec: {
        replicas: 3,
        selector: { matchLabels: { app: 'a.b' } },
        template: { metadata: { labels: { app: 'a.b' } }, spec: { containers: [{ image: 'i' }] } },
      },
    });
    expect(childOf(HelloApp, objectOf(HelloApp, 'x', { image: 'i' }), 'Deployment', 'x')).toHaveProperty(
      'spec.replicas',
      1,
    );
  });

  it('needs an image and a size that can be', () => {
    expect(wrongPaths(HelloApp, {})).toEqual(['spec.image']);
    expect(wrongPaths(HelloApp, { image: '', size: -1 })).toEqual(['spec.image', 'spec.size']);
    expect(wrongPaths(HelloApp, { image: 'i', size: 0 })).toEqual([]);
  });

  it('bears names of up to 63 characters, with dots', () => {
    expect([nameKept(HelloApp, 'a'.repeat(63), spec), nameKept(HelloApp, 'a'.repeat(64), spec)]).toEqual([true, false]);
  });

  it('can be scaled, and reports what an autoscaler reads', () => {
    expect(HelloApp.scale).toEqual({
      specReplicasPath: '.spec.size',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    });
    const self = objectOf(HelloApp, 'x', spec);
    const live = { ...childOf(HelloApp, self, 'Deployment', 'x'), status: { replicas: 3, readyReplicas: 1 } };
    expect(observed(HelloApp, self, [live])).toEqual({ replicas: 3, readyReplicas: 1, selector: 'app=x' });
    expect(observed(HelloApp, self, [])).toEqual({ replicas: 0, readyReplicas: 0, selector: 'app=x' });
  });
});

describe('DemoMicroService', () => {
  it('runs one container of its own name on port 9898', () => {
    expect(
      childOf(DemoMicroService, objectOf(DemoMicroService, 'dms', { image: 'i' }), 'Deployment', 'dms').spec,
    ).toEqual({
      selector: { matchLabels: { app: 'dms' } },
      template: {
        metadata: { labels: { app: 'dms' } },
        spec: {
          containers: [
            { name: 'dms', image: 'i', imagePullPolicy: 'Always', ports: [{ containerPort: 9898, protocol: 'TCP' }] },
          ],
        },
      },
    });
  });

  it('has exactly this finalizer, and deletes in the foreground', () => {
    expect(DemoMicroService.finalizer).toEqual({
      name: 'demomicroservice.finalizers.devops.my.domain',
      propagation: 'Foreground',
    });
  });

  it('bears DNS labels only, and needs an image', () => {
    const kept = ['a', 'a.b', 'a'.repeat(64)].map((name) => nameKept(DemoMicroService, name, { image: 'i' }));
    expect(kept).toEqual([true, false, false]);
    expect(wrongPaths(DemoMicroService, {})).toEqual(['spec.image']);
  });
});

describe('CronTab', () => {
  const spec = { cronSpec: '*/5 1-5 * jan mon', image: 'i' };

  it('asks for nothing without a spec, and says so', () => {
    for (const empty of [undefined, {}, { suspend: true }]) {
      const self = objectOf(CronTab, 'c', empty);
      expect(titlesOf(CronTab, self)).toEqual([]);
      expect(CronTab.readyReason?.(withDefaults(CronTab, self))).toMatchObject({ reason: 'NothingScheduled' });
    }
    expect(CronTab.readyReason?.(withDefaults(CronTab, objectOf(CronTab, 'c', spec)))).toBeUndefined();
  });

  it('runs on its schedule, one at a time', () => {
    const further = { timeZone: 'Europe/Berlin', suspend: true, command: ['a', 'b'] };
    expect(childOf(CronTab, objectOf(CronTab, 'c', { ...spec, ...further }), 'CronJob', 'c').spec).toEqual({
      schedule: spec.cronSpec,
      timeZone: 'Europe/Berlin',
      suspend: true,
      concurrencyPolicy: 'Forbid',
      jobTemplate: {
        spec: {
          template: {
            spec: { restartPolicy: 'OnFailure', containers: [{ name: 'crontab', image: 'i', command: ['a', 'b'] }] },
          },
        },
      },
    });
    expect(childOf(CronTab, objectOf(CronTab, 'c', spec), 'CronJob', 'c').spec).toMatchObject({ suspend: false });
  });

  it('says what a schedule is, and quotes no pattern', () => {
    const refused = (): unknown => withDefaults(CronTab, objectOf(CronTab, 'c', { cronSpec: '* * *', image: 'i' }));
    expect(refused).toThrow(
      /must be five fields \(minute hour day-of-month month day-of-week\) .*, or @hourly, @daily/,
    );
    const crd = crdManifest(CronTab) as unknown as {
      spec: { versions: [{ schema: { openAPIV3Schema: { properties: { spec: { properties: object } } } } }] };
    };
    const { spec } = crd.spec.versions[0].schema.openAPIV3Schema.properties;
    expect(spec.properties).not.toHaveProperty('cronSpec.pattern');
    expect(spec.properties).toHaveProperty('cronSpec.maxLength', 1024);
  });

  it('needs schedule and image together, and a name of at most 52 characters', () => {
    expect(wrongPaths(CronTab, { image: 'i' })).toEqual(['spec']);
    expect(wrongPaths(CronTab, { cronSpec: '@daily' })).toEqual(['spec']);
    expect([52, 53].map((length) => nameKept(CronTab, 'a'.repeat(length)))).toEqual([true, false]);
  });

  it('reports its runs', () => {
    const live = {
      ...childOf(CronTab, objectOf(CronTab, 'c', spec), 'CronJob', 'c'),
      status: { active: [{}], lastScheduleTime: 't' },
    };
    expect(observed(CronTab, objectOf(CronTab, 'c', spec), [live])).toEqual({ lastScheduleTime: 't', active: 1 });
    expect(observed(CronTab, objectOf(CronTab, 'c'), [])).toEqual({});
  });
});

describe('SampleResource', () => {
  it('runs one pod of its image', () => {
    const self = objectOf(SampleResource, 's', { podImage: 'p' });
    expect(childOf(SampleResource, self, 'Deployment', 's')).toMatchObject({
      spec: { replicas: 1, template: { spec: { containers: [{ image: 'p' }] } } },
    });
    expect(wrongPaths(SampleResource, {})).toEqual(['spec.podImage']);
  });
});

describe('Foo', () => {
  const spec = { deploymentName: 'd', replicas: 2 };

  it('runs nginx under the name it is given', () => {
    const labels = { app: 'nginx', controller: 'foo' };
    expect(childOf(Foo, objectOf(Foo, 'foo', spec), 'Deployment', 'd')).toMatchObject({
      metadata: { labels },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'nginx', image: 'nginx:latest' }] } },
      },
    });
    expect(childOf(Foo, objectOf(Foo, 'foo', { deploymentName: 'd' }), 'Deployment', 'd')).toHaveProperty(
      'spec.replicas',
      1,
    );
  });

  it('takes 1 to 10 replicas', () => {
    const wrong = [0, 1, 10, 11].map((replicas) => wrongPaths(Foo, { ...spec, replicas }).length > 0);
    expect(wrong).toEqual([true, false, false, true]);
    expect(wrongPaths(Foo, {})).toEqual(['spec.deploymentName']);
  });

  it('stands in a protected group, records Synced, and bears its name in a label', () => {
    expect(Foo.crdAnnotations).toEqual({ 'api-approved.kubernetes.io': 'unapproved, sample only' });
    expect(Foo.syncedEvent?.(withDefaults(Foo, objectOf(Foo, 'foo', spec)))).toEqual({
      reason: 'Synced',
      message: 'Foo synced successfully',
    });
    expect(nameKept(Foo, 'a'.repeat(64), spec)).toBe(false);
    const self = objectOf(Foo, 'foo', spec);
    const live = { ...childOf(Foo, self, 'Deployment', 'd'), status: { availableReplicas: 2 } };
    expect(observed(Foo, self, [live])).toEqual({ availableReplicas: 2 });
  });
});
