import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DevArguments } from '../../cli/dev-arguments';
import type { DevCluster } from '../../cli/dev-cluster';
import { DevOperators } from '../../cli/dev-operators';
import type { LocalPlatform } from '../../cli/local-platform';
import { waitFor } from '../../testing/wait-for';
import { kindredProject } from '../support/kindred-project';
import { temporaryFolder } from '../support/temporary-folder';

const folder = temporaryFolder('kindred-dev-operators-');
const pidFile = join(folder, 'pid');
const file = join(folder, 'operator.cjs');
const [operator] = kindredProject.operators;

/** One that takes a second until it serves its metrics. */
const slow = `
  const { createServer } = require('node:http');
  const port = Number(/--metrics-port=(\\d+)/.exec(process.argv.join(' '))[1]);
  const began = Math.round(Date.now() / 1000 - process.uptime());
  require('node:fs').writeFileSync('${pidFile}', String(process.pid));
  setTimeout(() => {
    createServer((_, response) => response.end('process_start_time_seconds ' + began + '\\n')).listen(port, '127.0.0.1');
  }, 1000);
`;

const platform = {
  project: kindredProject,
  operators: [{ operator, serviceAccount: { namespace: 'n', name: 'x' }, args: [], leaseName: undefined }],
} as unknown as LocalPlatform;

function operatorsOn(failed: Promise<never>): DevOperators {
  const cluster = { failed, dataDir: folder, kubeconfigFor: () => Promise.resolve(join(folder, 'config')) };
  return new DevOperators({
    args: { inspect: undefined, metricsPort: 0, logLevel: 'info', logFile: undefined } as unknown as DevArguments,
    cluster: cluster as unknown as DevCluster,
    view: { print: () => undefined, show: () => undefined, end: () => undefined },
    signal: new AbortController().signal,
  });
}

test('an operator that is being started when all is to end ends too', async () => {
  writeFileSync(file, slow);
  const operators = operatorsOn(new Promise(() => undefined));
  const starting = operators.start(platform, [{ file, code: slow, sources: [], packages: [] }]);
  const failed = expect(starting).rejects.toThrow('SIGTERM');
  await waitFor(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8') !== '');
  await operators.stop();
  await failed;
  expect(operators.processes).toEqual([]);
  expect(() => process.kill(Number(readFileSync(pidFile, 'utf8')), 0)).toThrow('ESRCH');
});
