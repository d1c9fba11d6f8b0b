import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { CliError, InterruptedError } from '../../cli/errors';
import { OperatorProcess, waitUntilServing } from '../../cli/operator-process';
import { GuardedProcess } from '../../local/guarded-process';
import type * as portsModule from '../../local/ports';
import { PORT_IN_USE } from '../../operator/process/health-server';
import { waitForPid } from '../support/processes';
import { temporaryFolder } from '../support/temporary-folder';

/** The ports that are said to be free before it is looked. */
const mockFreePorts: number[] = [];
jest.mock('../../local/ports', () => {
  const actual = jest.requireActual<typeof portsModule>('../../local/ports');
  return { ...actual, freePort: () => mockFreePorts.shift() ?? actual.freePort() };
});

const folder = temporaryFolder('kindred-operator-start-');
const logFile = path.join(folder, 'operator.log');
const bundleFile = path.join(folder, 'operator.cjs');
const never = new AbortController().signal;

/** An operator that says nothing while all is well, as one of log level `error`. */
const silent = `
  const { createServer } = require('node:http');
  const port = Number(/--metrics-port=(\\d+)/.exec(process.argv.join(' '))[1]);
  const began = Math.round(Date.now() / 1000 - process.uptime());
  const server = createServer((_, response) => response.end('process_start_time_seconds ' + began + '\\n'));
  server.on('error', () => { console.error('${PORT_IN_USE}'); process.exitCode = 1; });
  server.listen(port, '127.0.0.1');
`;

function bundle(code: string): void {
  writeFileSync(bundleFile, code);
}

const start = (more: { readonly port?: number; readonly signal?: AbortSignal } = {}): Promise<OperatorProcess> =>
  OperatorProcess.start({
    name: 'operator',
    program: { file: bundleFile, packages: [] },
    args: [],
    logFile,
    folder,
    signal: never,
    ...more,
  });

describe('the operator of a start', () => {
  let others: Server;
  let taken: number;

  /** An operator of somebody else's, an hour old. */
  beforeAll(async () => {
    const began = Math.round(Date.now() / 1000) - 3600;
    others = createServer((_, response) => response.end(`process_start_time_seconds ${began}\n`));
    await new Promise<void>((resolve) => others.listen(0, '127.0.0.1', resolve));
    taken = (others.address() as AddressInfo).port;
  });
  afterAll(() => {
    others.closeAllConnections();
    others.close();
  });
  beforeEach(() => bundle(silent));

  test('is known to serve though it logs nothing', async () => {
    const operator = await start();
    expect((await fetch(`http://127.0.0.1:${operator.port}/metrics`)).status).toBe(200);
    expect(readFileSync(logFile, 'utf8')).toBe('');
    await operator.stop();
  });

  test('that does not listen to a takeover goes on', async () => {
    const operator = await start();
    operator.takeOver();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect((await fetch(`http://127.0.0.1:${operator.port}/metrics`)).status).toBe(200);
    await operator.stop();
  });

  test('that ends before it serves is told, with the end of its log', async () => {
    bundle("console.error('no such cluster'); process.exit(3)");
    const failed = await start().catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(CliError);
    expect((failed as CliError).message).toMatch(
      /^the operator exited with code 3\. The last lines of \S+operator\.log:\nno such cluster\nThe objects stay as they are/,
    );
  });

  test('is not mistaken for another that has taken its port since it was free: it gets another port', async () => {
    mockFreePorts.push(taken, taken);
    const operator = await start();
    expect(operator.port).not.toBe(taken);
    expect(readFileSync(logFile, 'utf8')).toBe('');
    await operator.stop();
  });

  test('gives up when its ports are taken again and again, or when it was told which', async () => {
    mockFreePorts.push(taken, taken, taken);
    await expect(start()).rejects.toThrow(PORT_IN_USE);
    expect(mockFreePorts).toEqual([]);
    await expect(start({ port: taken })).rejects.toThrow(PORT_IN_USE);
  });

  test('that does not get to serve ends with what interrupts the start', async () => {
    const pidFile = path.join(folder, 'pid');
    bundle(`require('node:fs').writeFileSync('${pidFile}', String(process.pid)); setInterval(() => {}, 1000)`);
    const interruption = new AbortController();
    const starting = start({ signal: interruption.signal }).catch((error: unknown) => error);
    const pid = await waitForPid(pidFile);
    const reason = new InterruptedError('SIGINT');
    interruption.abort(reason);
    expect(await starting).toBe(reason);
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });
});

describe('a process that is started before its program is known', () => {
  const options = { name: 'operator', args: [], logFile, folder };
  const packageFile = path.join(folder, 'package.cjs');

  test('has loaded the packages when it gets the program, and runs that as if it had been started with it', async () => {
    writeFileSync(packageFile, `globalThis.loadedAfter = process.argv.length;`);
    const program = { file: bundleFile, packages: [packageFile, path.join(folder, 'missing.cjs')] };
    const prewarmed = OperatorProcess.prewarm({ ...options, program });
    bundle(
      `console.log(JSON.stringify([globalThis.loadedAfter, process.argv.slice(1, 3), typeof require('./package.cjs'), require.main === module]));${silent}`,
    );
    const operator = await OperatorProcess.start({
      ...options,
      ...{ program, prewarmed, args: ['--a=b'], appends: true, signal: never },
    });
    expect(JSON.parse(readFileSync(logFile, 'utf8'))).toEqual([3, [bundleFile, '--a=b'], 'object', true]);
    const { pid } = prewarmed;
    await operator.stop();
    expect(() => process.kill(pid ?? 0, 0)).toThrow('ESRCH');
  });

  test('and has ended meanwhile, is replaced by another', async () => {
    bundle(silent);
    const program = { file: bundleFile, packages: [] };
    const prewarmed = OperatorProcess.prewarm({ ...options, program });
    await prewarmed.kill();
    const operator = await OperatorProcess.start({ ...options, program, prewarmed, signal: never });
    expect((await fetch(`http://127.0.0.1:${operator.port}/metrics`)).status).toBe(200);
    await operator.stop();
  });
});

test('the wait for an operator that does not serve has an end, and shows the end of its log', async () => {
  const process = new GuardedProcess({
    ...{ part: 'the operator', program: '/bin/sh', args: ['-c', 'echo still thinking; exec sleep 60'] },
    ...{ cwd: folder, logFile: path.join(folder, 'slow.log') },
  });
  const { freePort } = jest.requireActual<typeof portsModule>('../../local/ports');
  const port = await freePort();
  await expect(waitUntilServing(process, { port, signal: never, timeoutMs: 300 })).rejects.toThrow(
    new RegExp(
      `^waited 0\\.3 s for the operator to serve its metrics on 127\\.0\\.0\\.1:${port}; last seen: nothing answers there\\.\n` +
        'The last lines of \\S+slow\\.log:\nstill thinking$',
    ),
  );
  await process.kill();
});
