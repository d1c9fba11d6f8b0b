import * as pulumi from '@pulumi/pulumi';
import { HelloApp } from '../../../constructs';
import { KindComponent } from '../../../stacks/components';
import { ConstructResources, KindResource } from '../../../stacks/bridge';
import { run } from './engine';

/**
 * A program of its own, since an error in an Output ends one: as JSON, what was registered of objects whose Outputs turn out wrong or
 * right, and the error that Pulumi would end with.
 */
async function attempt(program: () => unknown): Promise<{ registered: readonly string[]; error: string | null }> {
  let failed: string | null = null;
  const onFailure = (error: unknown): void => {
    failed ??= error instanceof Error ? error.message : String(error);
  };
  process.on('unhandledRejection', onFailure);
  const registrations = await run(program).catch((error: unknown) => {
    onFailure(error);
    return [];
  });
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', onFailure);
  return { registered: registrations.map(({ name }) => name), error: failed };
}

const inTree = (size: pulumi.Output<number>) => () =>
  new ConstructResources('tree', {
    namespace: 'apps',
    build: (chart) =>
      new KindResource(chart, 'app', { kind: HelloApp, metadata: { name: 'web' }, spec: { image: 'nginx', size } }),
  });

const alone = (size: pulumi.Output<number>) => () => {
  const metadata = { name: 'hello', namespace: 'apps' };
  return new KindComponent('web', { kind: HelloApp, metadata, spec: { image: 'nginx', size } });
};

async function main(): Promise<void> {
  const wrong = [inTree(pulumi.output(-1)), inTree(pulumi.secret(-1)), alone(pulumi.output(-1))];
  const programs = [...wrong, inTree(pulumi.output(1))];
  const results = [];
  for (const program of programs) results.push(await attempt(program));
  process.stdout.write(JSON.stringify(results));
}

void main();
