import { kinds } from '../../constructs/kinds';
import { Start, expectNothingLeft, helloApp, manifest, processesOf, startTimeoutMs } from './dev-process';

// Other ways to start, to fail and to end are in start.slow.test.ts.

describe('kindred dev --once', () => {
  test(
    'brings the samples of every kind to Ready, besides the objects of a file, and leaves nothing behind',
    async () => {
      const file = manifest('mine.yaml', helloApp('mine', { image: 'nginx', size: 2 }));
      const start = new Start('--once', `--file=${file}`);
      await start.says('The operator runs as a process');
      expect(processesOf(start).length).toBeGreaterThan(5);
      expect(await start.ended).toMatchObject({ code: 0, stderr: '' });
      for (const { kind, samples } of kinds) {
        for (const { name } of samples) {
          expect(start.stdout).toMatch(new RegExp(`^${kind} kindred-samples/${name} Ready=True \\(`, 'm'));
        }
      }
      expect(start.stdout).toMatch(/^HelloApp kindred-samples\/mine Ready=True \(Ready\) children: Deployment 2\/2$/m);
      expect(start.stdout).toMatch(/All 8 objects are Ready/);
      expectNothingLeft(start);
    },
    startTimeoutMs,
  );
});
