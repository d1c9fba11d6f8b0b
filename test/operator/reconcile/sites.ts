import { ApiObject } from 'cdk8s';
import { z } from 'zod';
import type { Effect } from '../../../constructs/kind/effects';
import { defineKind, type AnyKind } from '../../../constructs/kind/kind';
import type { KindProps } from '../../../constructs/kind/kind-props';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { World } from '../effects/world';
import { ref } from './harness';

const spec = z.object({
  source: z.string().default('a').describe('What is looked up.'),
  size: z.int32().default(1).describe('What is not.'),
});
const status = z.object({
  image: z.string().optional().describe('What was found.'),
  note: z.string().optional().describe('What may be found.'),
  verified: z.string().optional().describe('What was verified.'),
  settings: z.int32().optional().describe('Settings that exist.'),
});
export type Props = KindProps<typeof spec, typeof status>;
export type Self = Parameters<Props['children']>[1];

export function configMap(scope: Parameters<Props['children']>[0], name: string, data: object): void {
  new ApiObject(scope, name, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
}

export const resolve: Effect<Self> = {
  ...{ name: 'resolve', phase: 'apply', plan: 'thing.up', timeoutSeconds: 60 },
  maxAttempts: () => 3,
  input: ({ spec: { source } }: Self) => ({ source }),
};

export function kindOf(more: Partial<Props>): AnyKind {
  return defineKind({
    ...{ group: 'example.com', version: 'v1', kind: 'Site', plural: 'sites', scope: 'Namespaced' },
    ...{ description: 'A site.', spec, status, owns: [owned.ConfigMap], effects: [resolve] },
    children(scope, { spec: { source, size }, status: reported }) {
      configMap(scope, 'settings', { size: String(size) });
      if (reported?.image !== undefined) configMap(scope, 'web', { source, image: reported.image });
    },
    observe: ({ children }) => ({ settings: children.all(owned.ConfigMap).length }),
    ...more,
  });
}

/** A kind whose effects are stored, and one whose effects are run again after a restart. */
export const Stored = kindOf({});
export const Probed = kindOf({ effects: [{ ...resolve, everySeconds: 60 }] });

export const HELD =
  'Until the effect "resolve" has succeeded for this spec, the children that follow from status.image are held: neither changed nor deleted.';

/** What was written of children. */
export const childWrites = ({ writes }: { readonly writes: readonly string[] }): readonly string[] =>
  writes.filter((write) => write.includes('ConfigMap ') || write.includes('Job '));

/** A site `a`, whose children are rendered from what its effects report. */
export class Site extends World {
  constructor(kind: AnyKind) {
    super(4, kind);
  }

  /** A site without reports. */
  static async of(kind: AnyKind): Promise<Site> {
    const site = new Site(kind);
    await site.harness.add('a', {});
    return site;
  }

  /** A site with a report, by which it is Ready. */
  static async ready(kind: AnyKind): Promise<Site> {
    const site = await Site.of(kind);
    await site.reconcile();
    await site.find();
    await site.reconcile();
    expect(site.harness.conditions('a')).toEqual(['Ready=True Ready']);
    expect(site.child('web')).toMatchObject({ data: { source: 'a', image: 'a:1' } });
    return site;
  }

  /** A site that was provisioned once, and whose first check is in progress. */
  static async provisioned(): Promise<Site> {
    const provision = { ...resolve, name: 'provision', when: ({ status: now }: Self) => now?.note !== 'done' };
    const check = {
      ...resolve,
      name: 'check',
      everySeconds: 60,
      when: ({ status: now }: Self) => now?.note === 'done',
    };
    const site = await Site.of(kindOf({ effects: [provision, check] }));
    await site.reconcile();
    await site.end({ message: 'Done.', status: { image: 'a:1', note: 'done' } });
    await site.reconcile();
    return site;
  }

  child(name: string): KubeObject | undefined {
    return this.harness.server.peek(owned.ConfigMap, ref(name));
  }

  uid(name: string): string | undefined {
    return this.child(name)?.metadata.uid;
  }

  /** The run that is in progress finds the image of a source. */
  async find(source = 'a'): Promise<void> {
    await this.end({ message: 'Found.', status: { image: `${source}:1` } });
  }

  /** A few reconciles, after which nothing is left to do but what runs. */
  async calm(): Promise<void> {
    for (let i = 0; i < 4; i += 1) await this.reconcile();
  }

  /** The run that is in progress reports a part of it. */
  async report(status: object): Promise<void> {
    this.open[0]?.run.report({ message: 'Found a part.', status: { ...status } });
    await this.reconcile();
  }

  /** The run that is in progress ends, and what follows is done. */
  async finish(how: object | Error = {}): Promise<void> {
    await this.end(how instanceof Error ? how : { message: 'Done.', status: { ...how } });
    await this.calm();
  }

  /** The status is cleared, as a backup that has none does it. */
  loseStatus(): void {
    this.harness.server.setStatus(this.harness.kind.type, ref('a'), {});
  }
}
