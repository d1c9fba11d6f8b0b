import * as pulumi from '@pulumi/pulumi';
import { HelloApp } from '../../../constructs';
import { ConstructResources, KindResource } from '../../../stacks/components/bridge';
import { run } from './engine';

/**
 * A program of its own, since an error in an Output ends one: as JSON, what was registered of objects whose Outputs turn out wrong or
 * right, and the error that Pulumi would end with.
 */
async function attempt(size: pulumi.Output<number>): Promise<{ registered: readonly string[]; error: string | null }> {
  let failed: string | null = null;
  const onFailure = (error: unknown): void => {
    failed ??= error instanceof Error ? error.message : String(error);
  };
  process.on('unhandledRejection', onFailure);
  const program = (): unknown =>
    new ConstructResources('tree', {
      namespace: 'apps',
      build: (chart) =>
        new KindResource(chart, 'app', { kind: HelloApp, metadata: { name: 'web' }, spec: { image: 'nginx', size } }),
    });
  const registrations = await run(program).catch((error: unknown) => {
    onFailure(error);
    return [];
  });
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', onFailure);
  return { registered: registrations.map(({ name }) => name), error: failed };
}

async function main(): Promise<void> {
  const attempts = [pulumi.output(-1), pulumi.secret(-1), pulumi.output(1)];
  const results = [];
  for (const size of attempts) results.push(await attempt(size));
  process.stdout.write(JSON.stringify(results));
}

void main();
