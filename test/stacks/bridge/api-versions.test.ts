import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { ConstructResources, typeToken } from '../../../stacks/bridge';
import { otherBuiltInVersions } from '../../../stacks/bridge/built-in-kinds';
import { named, run } from './engine';
import { object } from './objects';

/** A class of the SDK: the type it registers, and those that it takes over. Read as text, since loading all of them takes long. */
interface SdkClass {
  readonly type: string;
  readonly aliases: readonly string[];
}

const sdk = path.dirname(require.resolve('@pulumi/kubernetes/package.json'));

function sdkClasses(): readonly SdkClass[] {
  const files = readdirSync(sdk, { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.js') && !file.startsWith('node_modules'))
    .flatMap((file): SdkClass[] => {
      const text = readFileSync(path.join(sdk, file), 'utf8');
      const type = /__pulumiType = ['"](kubernetes:[^'"]+)['"]/.exec(text)?.[1];
      // None of them is an object of a manifest.
      if (type === undefined || /(Patch|List)$|:helm\.sh\//.test(type)) return [];
      const aliases = /aliases: \[([^\]]*)\]/.exec(text)?.[1] ?? '';
      return [{ type, aliases: [...aliases.matchAll(/type: "([^"]+)"/g)].map((match) => match[1] ?? '') }];
    });
}

function otherTypes(type: string): readonly string[] {
  const [, version = '', kind = ''] = type.split(':');
  const others = otherBuiltInVersions({ apiVersion: version.replace(/^core\//, ''), kind });
  return others.map((apiVersion) => typeToken({ apiVersion, kind }));
}

test('the versions of each kind are those that the classes of @pulumi/kubernetes take over', () => {
  const classes = sdkClasses();
  expect(classes.length).toBeGreaterThan(150);
  expect(classes.filter(({ aliases }) => aliases.length > 0).length).toBeGreaterThan(100);
  const sorted = (types: readonly string[]): readonly string[] => [...types].sort();
  expect(classes.map(({ type }) => [type, sorted(otherTypes(type))])).toEqual(
    classes.map(({ type, aliases }) => [type, sorted(aliases)]),
  );
});

test("an object of Kubernetes' own that moves to another version stays the same resource", async () => {
  const registrations = await run(
    () =>
      new ConstructResources('web', {
        namespace: 'shop',
        build: (chart) => {
          object(chart, 'hpa', { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' });
          object(chart, 'config');
          // Not Kubernetes' own, whatever it is called.
          object(chart, 'other', { apiVersion: 'example.com/v1', kind: 'CronJob', namespace: 'shop' });
        },
      }),
  );
  expect(named(registrations, 'web/hpa').aliasTypes).toEqual([
    'kubernetes:autoscaling/v1:HorizontalPodAutoscaler',
    'kubernetes:autoscaling/v2beta1:HorizontalPodAutoscaler',
    'kubernetes:autoscaling/v2beta2:HorizontalPodAutoscaler',
  ]);
  expect(named(registrations, 'web/config').aliasTypes).toEqual([]);
  expect(named(registrations, 'web/other').aliasTypes).toEqual([]);
});
