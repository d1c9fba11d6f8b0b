import * as pulumi from '@pulumi/pulumi';
import type { Machine, Task } from '../../../provision';
import { TaskCommands, type TaskCommandsOptions } from '../../../stacks/remote-cluster/commands';
import { named, opened, plainTexts, record, unknown } from './recorder';

/** Decisions of how a task becomes Commands, on a plan small enough to read. */
const sshKey = { namespace: 'x', name: 'ssh', key: 'k' };
const machine = (address: string, more: Partial<Machine> = {}): Machine => ({ address, sshKey, user: 'root', ...more });
const task = (id: string, fields: Partial<Task>): Task => ({
  id,
  description: id,
  after: [],
  apply: `echo ${id}`,
  timeoutSeconds: 60,
  ...fields,
});

const tasks: readonly Task[] = [
  task('a/check', { machine: machine('a') }),
  task('a/server', {
    machine: machine('a'),
    after: ['a/check'],
    remove: 'rm a',
    outputs: ['token'],
    stdin: [{ name: 'registry', from: { secret: { namespace: 'x', name: 'reg', key: 'password' } } }],
    timeoutSeconds: 900,
  }),
  task('b/agent', {
    machine: machine('b', { hostKey: 'ssh-ed25519 AAAA', bastion: machine('jump', { port: 2222 }) }),
    after: ['a/server'],
    remove: 'rm b',
    stdin: [
      { name: 'token', from: { output: { task: 'a/server', name: 'token' } } },
      {
        name: 'config',
        from: { template: ['password: ', { secret: { namespace: 'x', name: 'reg', key: 'password' } }] },
      },
    ],
  }),
  task('report', { after: ['b/agent'] }),
];

class Group extends pulumi.ComponentResource {
  constructor() {
    super('test:index:Group', 'prod');
  }
}

const values: Readonly<Record<string, string>> = { ssh: 'KEY-CANARY', reg: 'PASSWORD-CANARY' };
const run = (options: Partial<TaskCommandsOptions> = {}, { preview = false, plan = tasks } = {}) =>
  record(
    () => {
      const parent = new Group();
      new TaskCommands(
        plan.map((each) => ({ task: each, actual: each })),
        {
          name: 'prod',
          parent,
          secret: ({ name }) => values[name] ?? '',
          dialAttempts: 10,
          serves: ({ id }) => (id.includes('/') ? id.split('/')[0] : undefined),
          isProtected: () => true,
          servesLostMachine: () => false,
          runsOnLostMachine: () => false,
          ...options,
        },
      );
    },
    { preview, answers: () => ({ token: 'TOKEN-CANARY' }) },
  );

const urn = (name: string, type = 'remote') =>
  expect.stringMatching(new RegExp(`\\$command:${type}:Command::${name}$`)) as string;

/** The values that a script gets, without the script. */
const readBy = (stdin: string) =>
  Object.fromEntries(
    stdin
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.split(' ') as [string, string])
      .map(([name, coded]) => [name, Buffer.from(coded, 'base64').toString()]),
  );

/** The script that a Command's stdin begins with, out of its wrappings. */
function scriptIn(stdin: string): string {
  const guarded = Buffer.from(stdin.split('\n')[0] ?? '', 'base64').toString();
  return Buffer.from(/printf %s ([A-Za-z0-9+/=]+) /.exec(guarded)?.[1] ?? '', 'base64').toString();
}

test('makes a Command of each task, and one before it where something is to be taken away', async () => {
  const found = await run();
  expect(found.map(({ type, name }) => `${type} ${name}`)).toEqual([
    'test:index:Group prod',
    'command:remote:Command prod/a/check',
    'command:remote:Command prod/a/server/removal',
    'command:remote:Command prod/a/server',
    'command:remote:Command prod/b/agent/removal',
    'command:remote:Command prod/b/agent',
    'command:local:Command prod/report',
  ]);
});

test('keeps the order of the plan, and of its reverse', async () => {
  const found = await run();
  const needs = (name: string) => named(found, name).dependencies;
  expect(needs('prod/a/server/removal')).toEqual([urn('prod/a/check')]);
  expect(needs('prod/a/server')).toEqual(expect.arrayContaining([urn('prod/a/check'), urn('prod/a/server/removal')]));
  expect(needs('prod/b/agent/removal')).toEqual([urn('prod/a/server'), urn('prod/a/server/removal')]);
  expect(needs('prod/b/agent')).toEqual(expect.arrayContaining([urn('prod/a/server'), urn('prod/b/agent/removal')]));
  expect(needs('prod/report')).toEqual([urn('prod/b/agent')]);
});

test('registers all that can be taken off a machine before anything is done to it', async () => {
  const more = [
    ...tasks,
    task('a/ready', { machine: machine('a'), after: ['a/server'], remove: 'leave a' }),
    // Comes after another machine's: it cannot be registered earlier.
    task('a/last', { machine: machine('a'), after: ['b/agent'], remove: 'undo' }),
  ];
  const found = await run({}, { plan: more });
  const needs = (name: string) => named(found, name).dependencies;
  expect(needs('prod/a/ready/removal')).toEqual(
    expect.arrayContaining([urn('prod/a/check'), urn('prod/a/server/removal')]),
  );
  expect(needs('prod/a/ready/removal')).not.toContainEqual(urn('prod/a/server'));
  expect(needs('prod/a/server')).toContainEqual(urn('prod/a/ready/removal'));
  expect(needs('prod/a/last/removal')).toContainEqual(urn('prod/b/agent'));
});

test('applies on create and update, and takes away on delete, never by replacing', async () => {
  const found = await run();
  const applied = named(found, 'prod/a/server').inputs;
  expect(applied).toMatchObject({ create: expect.stringContaining(' prod/a/server@') as string });
  expect(applied).toMatchObject({ update: applied['create'], addPreviousOutputInEnv: false, logging: 'none' });
  expect(applied).not.toHaveProperty('delete');
  expect(applied).not.toHaveProperty('triggers');
  expect(applied).not.toHaveProperty('environment');
  expect(scriptIn(opened(applied['stdin']))).toBe('echo a/server');

  const removal = named(found, 'prod/a/server/removal').inputs;
  expect(removal).toMatchObject({ delete: expect.stringContaining(' prod/a/server/removal@') as string });
  expect(removal).not.toHaveProperty('create');
  expect(removal).not.toHaveProperty('update');
  expect(removal).not.toHaveProperty('triggers');
  expect(scriptIn(opened(removal['stdin']))).toBe('rm a');
});

test('gives scripts their values, over stdin alone', async () => {
  const found = await run();
  const expected = { token: 'TOKEN-CANARY', config: 'password: "PASSWORD-CANARY"' };
  for (const name of ['prod/b/agent', 'prod/b/agent/removal']) {
    expect(readBy(opened(named(found, name).inputs['stdin']))).toEqual(expected);
  }
  for (const { inputs, type, secretOutputs } of found) {
    expect(plainTexts(inputs).filter((text) => /CANARY|Q0FOQVJZ|NBTkFSW|DQU5BUl/.test(text))).toEqual([]);
    if (type.startsWith('command:'))
      expect(secretOutputs).toEqual(expect.arrayContaining(['stdin', 'stdout', 'stderr']));
  }
});

test('reaches each machine by its key, held to its host key, through its bastion', async () => {
  const found = await run({ passphrase: pulumi.secret('PHRASE-CANARY') });
  expect(named(found, 'prod/b/agent').inputs['connection']).toEqual({
    secret: {
      host: 'b',
      port: 22,
      user: 'root',
      hostKey: 'ssh-ed25519 AAAA',
      privateKey: 'KEY-CANARY',
      privateKeyPassword: 'PHRASE-CANARY',
      dialErrorLimit: 10,
      perDialTimeout: 15,
      proxy: {
        host: 'jump',
        port: 2222,
        user: 'root',
        privateKey: 'KEY-CANARY',
        privateKeyPassword: 'PHRASE-CANARY',
        dialErrorLimit: 10,
        perDialTimeout: 15,
      },
    },
  });
  expect(named(found, 'prod/b/agent/removal').inputs['connection']).toMatchObject({ secret: { dialErrorLimit: 3 } });
});

test('protects what would take something away, and bounds each run', async () => {
  const found = await run({ isProtected: ({ id }) => id === 'a/server' });
  expect(found.filter((resource) => resource.protect).map(({ name }) => name)).toEqual(['prod/a/server/removal']);
  expect(named(found, 'prod/a/server').timeouts).toEqual({ create: '900s', update: '900s', delete: '900s' });
});

test('runs nothing on a machine that is gone, and keeps the order around it', async () => {
  const found = await run({ runsOnLostMachine: ({ machine: on }) => on?.address === 'b' });
  expect(found.map(({ name }) => name)).not.toContain('prod/b/agent');
  expect(named(found, 'prod/b/agent/removal').inputs).not.toHaveProperty('delete');
  expect(named(found, 'prod/report').dependencies).toEqual([urn('prod/b/agent/removal')]);
});

test('previews what a run will learn as unknown, and the rest as it is', async () => {
  const found = await run({}, { preview: true });
  expect(named(found, 'prod/b/agent').inputs).toMatchObject({
    create: expect.stringContaining('prod/b/agent@') as string,
    stdin: expect.anything() as unknown,
  });
  expect(JSON.stringify(named(found, 'prod/b/agent').inputs['stdin'])).toContain(unknown);
  expect(scriptIn(opened(named(found, 'prod/a/server').inputs['stdin']))).toBe('echo a/server');
});

test('runs a script as root, or as the user itself where the task asks for it', async () => {
  const plan = [
    task('c/own', { machine: machine('c', { user: 'rke' }) }),
    task('c/look', { machine: machine('c', { user: 'rke', asUser: true }) }),
  ];
  const found = await run({}, { plan });
  expect(scriptIn(opened(named(found, 'prod/c/own').inputs['stdin']))).toContain('exec sudo -n sh -c');
  expect(scriptIn(opened(named(found, 'prod/c/look').inputs['stdin']))).toBe('echo c/look');
});

test('gives a script an empty text for an output that a run did without', async () => {
  const missing = { output: { task: 'a/server', name: 'kubeconfig' } };
  const plan = [...tasks, task('again', { after: ['a/server'], stdin: [{ name: 'kubeconfig', from: missing }] })];
  const found = await run({}, { plan });
  const [, ...lines] = opened(named(found, 'prod/again').inputs['stdin']).split('\n');
  expect(lines).toEqual(['kubeconfig ', '']);
});
