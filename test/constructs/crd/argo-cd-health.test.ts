import { spawnSync } from 'node:child_process';
import { ARGO_CD_HEALTH_LUA, argoCdHealth } from '../../../constructs/crd';
import { allKinds } from '../../../constructs/kinds';

const lua = ['lua5.4', 'lua5.3', 'lua', 'luajit'].find((name) => spawnSync(name, ['-v']).status === 0);
if (lua === undefined) console.warn('there is no Lua on PATH: the health check for Argo CD is not run');

/** A value as Lua writes it. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(literal).join(',')}}`;
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).map(([key, item]) => `[${JSON.stringify(key)}]=${literal(item)}`);
    return `{${fields.join(',')}}`;
  }
  return JSON.stringify(value);
}

function healthOf(object: object): string {
  const program = `local function check(obj)\n${ARGO_CD_HEALTH_LUA}end
local hs = check(${literal(object)})
io.write(hs.status, ": ", hs.message)`;
  const { stdout, stderr, status } = spawnSync(lua ?? '', ['-'], { input: program, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

const metadata = { generation: 2 };
const condition = (type: string, status: string, message: string): object => ({ type, status, message, reason: 'R' });

(lua === undefined ? describe.skip : describe)('the health check for Argo CD', () => {
  test.each<[string, object, string]>([
    ['nothing was seen yet', { metadata }, 'Progressing: Waiting for the operator.'],
    [
      'the status is of an older generation',
      { metadata, status: { observedGeneration: 1, conditions: [condition('Ready', 'True', 'All is well.')] } },
      'Progressing: Waiting for the operator.',
    ],
    [
      'ready',
      { metadata, status: { observedGeneration: 2, conditions: [condition('Ready', 'True', 'All is well.')] } },
      'Healthy: All is well.',
    ],
    [
      'on its way',
      { metadata, status: { observedGeneration: 2, conditions: [condition('Ready', 'False', '1 of 2 pods.')] } },
      'Progressing: 1 of 2 pods.',
    ],
    [
      'only a person can help',
      {
        metadata,
        status: {
          observedGeneration: 2,
          conditions: [condition('Ready', 'False', 'No.'), condition('Stalled', 'True', 'The name is taken.')],
        },
      },
      'Degraded: The name is taken.',
    ],
    [
      'paused',
      { metadata: { ...metadata, annotations: { 'kindred.dev/paused': 'true' } } },
      'Suspended: Reconciling is paused.',
    ],
    ['being deleted', { metadata: { ...metadata, deletionTimestamp: 'now' } }, 'Progressing: Being deleted.'],
  ])('%s', (_, object, expected) => {
    expect(healthOf(object)).toBe(expected);
  });
});

test('there is one for every kind', () => {
  expect(Object.keys(argoCdHealth(allKinds))).toEqual(
    allKinds.map(({ group, kind }) => `resource.customizations.health.${group}_${kind}`),
  );
});
