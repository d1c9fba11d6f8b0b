import { mkdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { hanging, input, lab, locked, removal, runs, second } from './lock-lab';

/** Two runs of RKE for one cluster. */

test('a second run is refused while the first one is at work, and says who that is; a removal likewise', async () => {
  const { pid } = await hanging(input(0));
  const before = runs();
  const answer = await second(input(0));
  expect(answer).toMatchObject(locked(0));
  expect(answer.message).toContain(`on ${hostname()}, process ${pid}`);
  expect(answer.message).toMatch(/since 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ/);
  await expect(removal(input(0))).resolves.toMatchObject(locked(0));
  expect(runs()).toBe(before);
});

test('a lock that its holder cannot take back stays until a person removes it, and the message says where it is', async () => {
  const folderOf = join(lab.homes[0]!.home, '.kindred/rke');
  mkdirSync(folderOf, { recursive: true });
  const { name } = input(0);
  writeFileSync(join(folderOf, `${name}.lock`), 'token somewhere 2026-01-02T03:04:05Z root on gone-pod, process 7\n');
  const { message } = await second(input(0));
  expect(message).toContain('root on gone-pod, process 7, since 2026-01-02T03:04:05Z');
  expect(message).toContain(`remove ~/.kindred/rke/${name}.lock on 127.0.0.11`);
  expect(runs()).toBe(0);
});
