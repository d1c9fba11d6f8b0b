import fc from 'fast-check';
import type { AnyKind } from '../../../constructs/kind/kind';
import { PlanError } from '../../../operator/effects/plan-runner';
import { ref } from './harness';
import { configMap, kindOf, resolve, Site, type Props, type Self } from './sites';

// Whatever happens to an object with effects, in whatever order.

const steps = {
  reconcile: () => undefined,
  'the status is lost': (site: Site) => site.loseStatus(),
  'a field of the status is lost': (site: Site) => {
    const { kind, server } = site.harness;
    const { image: _, ...rest } = (server.peek(kind.type, ref('a'))?.status ?? {}) as { readonly image?: string };
    server.setStatus(kind.type, ref('a'), rest);
  },
  restart: (site: Site) => site.restart(),
  'the source a': (site: Site) => site.harness.respec('a', { source: 'a' }),
  'the source b': (site: Site) => site.harness.respec('a', { source: 'b' }),
  'another size': (site: Site) => site.harness.respec('a', { size: (site.clock.now % 7) + 1 }),
  progress: (site: Site) => site.open[0]?.run.report({ message: 'Found it.', status: reportOf(site) }),
  success: (site: Site) => endRun(site, { message: 'Done.', status: reportOf(site) }),
  failure: (site: Site) => endRun(site, new PlanError('ErrLookup', 'No answer.')),
  'a failure with a report': (site: Site) =>
    endRun(site, new PlanError('ErrLookup', 'It is broken.', { status: reportOf(site) })),
  'a period': (site: Site) => site.clock.pass(60_001),
  pause: (site: Site) => site.harness.annotate('a', { 'kindred.dev/paused': 'true' }),
  resume: (site: Site) => site.harness.annotate('a', {}),
} satisfies Record<string, (site: Site) => unknown>;
type Step = keyof typeof steps;

/** What the run in progress finds. */
function reportOf({ open }: Site): Readonly<Record<string, string>> {
  const { name = '', input = {} } = open[0]?.run.run ?? {};
  const { source, image } = input as { readonly source?: string; readonly image?: string };
  return name === 'resolve' ? { image: `${source ?? ''}:1` } : { verified: `${image ?? ''} is signed` };
}

async function endRun(site: Site, how: Parameters<Site['end']>[0]): Promise<void> {
  if (site.open.length > 0) await site.end(how);
}

async function take(site: Site, step: Step): Promise<void> {
  await steps[step](site);
  await site.reconcile();
}

const sign = { ...resolve, name: 'sign', input: ({ status }: Self) => ({ image: status?.image ?? '' }) };
const fromImage: Props['children'] = (scope, { spec: { source, size }, status }) => {
  configMap(scope, 'settings', { size: String(size) });
  if (status?.image !== undefined) configMap(scope, 'web', { source, image: status.image });
};
const fromBoth: Props['children'] = (scope, { spec: { source }, status }) => {
  if (status?.image === undefined || status.verified === undefined) return;
  configMap(scope, 'web', { source, image: status.image, verified: status.verified });
};
const fromVerified: Props['children'] = (scope, { spec: { source }, status }) => {
  if (status?.verified === undefined) return;
  configMap(scope, 'web', { source, image: status.verified.split(' ')[0], verified: status.verified });
};
const again = { everySeconds: 60 };

describe.each<[string, AnyKind]>([
  ['one effect', kindOf({ children: fromImage, effects: [resolve] })],
  ['one that is run again', kindOf({ children: fromImage, effects: [{ ...resolve, ...again }] })],
  ['two effects', kindOf({ children: fromBoth, effects: [resolve, sign] })],
  ['two, of which the second one is rendered', kindOf({ children: fromVerified, effects: [resolve, sign] })],
  ['two, the first one run again', kindOf({ children: fromBoth, effects: [{ ...resolve, ...again }, sign] })],
  ['two, the second one run again', kindOf({ children: fromBoth, effects: [resolve, { ...sign, ...again }] })],
  [
    'one that concerns an object with children',
    kindOf({ children: fromImage, effects: [{ ...resolve, when: ({ status }) => (status?.settings ?? 0) > 0 }] }),
  ],
])('%s', (_, kind) => {
  test('a child is never deleted, and never made of one spec and the report for another', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...(Object.keys(steps) as Step[])), { maxLength: 14 }),
        async (taken) => {
          const site = await Site.of(kind);
          const settle = async (): Promise<void> => {
            for (let i = 0; i < 6; i += 1) {
              site.clock.pass(60_001);
              await take(site, 'reconcile');
              await take(site, 'success');
            }
          };
          await settle();
          const web = site.uid('web');
          expect(web).toBeDefined();
          for (const step of taken) {
            await take(site, step);
            const {
              source = '',
              image = '',
              verified,
            } = site.child('web')?.['data'] as Readonly<Record<string, string>>;
            expect({ uid: site.uid('web'), image }).toEqual({ uid: web, image: `${source}:1` });
            expect(verified ?? `${image} is signed`).toBe(`${image} is signed`);
          }
          await take(site, 'resume');
          await settle();
          const { source = 'a' } = site.harness.object('a').spec as { readonly source?: string };
          expect(site.child('web')).toMatchObject({ data: { source, image: `${source}:1` } });
          expect(site.harness.conditions('a')[0]).toBe('Ready=True Ready');
        },
      ),
      { numRuns: 25 },
    );
  });
});
