import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as envelope from '../../constructs/kube/envelope';
import { childTypes } from '../../constructs/kind/kind';
import { kinds } from '../../constructs/kinds';
import { resourceName } from '../../constructs/kube/resource-type';
import { alertRules } from '../../constructs/operator';
import { provisionerUsage } from '../../provisioner/arguments';
import { OperatorMetrics } from '../../operator/metrics/operator-metrics';
import { literalsGivenTo, messagesLogged, metricsMade, sourcesOf } from './operating-scan';

const page = readFileSync(join(__dirname, '..', '..', 'docs', 'operating.md'), 'utf8');
const operator = [...sourcesOf('operator'), ...sourcesOf('provisioner')];
const reconcile = ['apply', 'reconcile', 'status'].flatMap((folder) => sourcesOf(`operator/${folder}`));

/** What stands in backquotes in the first column of the tables under a heading. */
function documented(heading: string): readonly string[] {
  const [, rest = ''] = page.split(`${heading}\n`, 2);
  const [section = ''] = rest.split(/^#{2,3} /m, 1);
  const cells = [...section.matchAll(/^\| (`[^|]+`) \|/gm)].map(([, cell = '']) => cell);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)).sort();
}

/** What is said outside of tables, and so only has to stand somewhere. */
function mentioned(name: string): boolean {
  return page.includes(`\`${name}\``);
}

function sorted(names: Iterable<string>): readonly string[] {
  return [...new Set(names)].sort();
}

test('every reason is documented, and no other', () => {
  const sources = [...reconcile, ...sourcesOf('constructs/kinds')];
  const reasons = sorted(literalsGivenTo('reason', sources));
  const onlyLogged = ['Conflict', 'ErrUnreachable', 'NotLeader'];
  expect(reasons).toEqual(expect.arrayContaining(['Ready', 'Progressing', 'ErrForbidden', ...onlyLogged]));
  expect(documented('### Reasons')).toEqual(reasons.filter((reason) => !onlyLogged.includes(reason)));
  expect(onlyLogged.filter((reason) => !mentioned(reason))).toEqual([]);
});

test('every reason of the provisioner itself is documented', () => {
  const sources = [...sourcesOf('operator/effects'), ...sourcesOf('provisioner')];
  const made = sources.flatMap(({ text }) =>
    [...text.matchAll(/new PlanError\(\s*'(\w+)'/g)].map(([, name = '']) => name),
  );
  expect(made.length).toBeGreaterThan(5);
  const reasons = new Set([...made, ...literalsGivenTo('reason', sources)]);
  expect([...reasons].filter((reason) => /^Err/.test(reason) && !mentioned(reason))).toEqual([]);
});

test('every action of an event is documented', () => {
  const actions = [...literalsGivenTo('action', reconcile)].filter((word) => /^[A-Z]/.test(word));
  expect(actions.length).toBeGreaterThan(3);
  expect(actions.filter((action) => !mentioned(action))).toEqual([]);
});

test('every metric is documented, and no other', async () => {
  const metrics = await new OperatorMetrics({ defaults: false }).registry.getMetricsAsJSON();
  expect(documented('## Metrics')).toEqual(sorted([...metrics.map(({ name }) => name), ...metricsMade(operator)]));
});

test('every alert is documented, and no other, with its severity', () => {
  const rules = alertRules({ name: 'operator', namespace: 'kindred-system', leaseName: 'operator' });
  expect(documented('## Alerts')).toEqual(sorted(rules.map(({ alert }) => alert)));
  for (const { alert, labels } of rules) expect(page).toContain(`| \`${alert}\` | ${labels['severity'] ?? ''} |`);
});

test('every annotation is documented, and the table holds those for people', () => {
  const own = Object.entries(envelope).flatMap(([name, value]) =>
    name.endsWith('_ANNOTATION') && typeof value === 'string' ? [value] : [],
  );
  expect(own.length).toBeGreaterThan(5);
  expect(own.filter((annotation) => !mentioned(annotation))).toEqual([]);
  const { PAUSED_ANNOTATION, RECONCILE_AT_ANNOTATION, ADOPT_ANNOTATION } = envelope;
  const { FORCE_REMOVE_ANNOTATION, LOST_MACHINES_ANNOTATION } = envelope;
  const forPeople = [PAUSED_ANNOTATION, RECONCILE_AT_ANNOTATION, ADOPT_ANNOTATION];
  expect(documented('## Annotations for people')).toEqual(
    sorted([...forPeople, FORCE_REMOVE_ANNOTATION, LOST_MACHINES_ANNOTATION]),
  );
});

test('every flag is documented, and no other', () => {
  const flags = [...provisionerUsage(kinds).matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, flag = '']) => flag);
  expect(documented('## Flags')).toEqual(sorted(flags));
});

test('every message of a level that wants attention is documented, and no other', () => {
  const messages = messagesLogged(['warn', 'error', 'fatal'], operator);
  expect([...messages]).toEqual(
    expect.arrayContaining(['lost leadership', 'standing for election failed', 'events were dropped']),
  );
  expect(documented('## Logs')).toEqual(sorted(messages));
});

test('the commands for children that were restored name every type that the kinds own', () => {
  const commands = [...page.matchAll(/^kubectl annotate (\S+) .*$/gm)].map(([, types = '']) => types.split(',').sort());
  const types = sorted(kinds.flatMap((kind) => childTypes(kind).map(resourceName)));
  expect(commands).toEqual([types, types]);
});

test('the links lead somewhere', () => {
  const links = [...page.matchAll(/\]\(([^)#]+)\)/g)].map(([, link = '']) => link);
  for (const link of links) expect(readFileSync(join(__dirname, '..', '..', 'docs', link), 'utf8')).not.toBe('');
});
