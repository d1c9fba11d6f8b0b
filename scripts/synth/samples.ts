import { Chart } from 'cdk8s';
import type { Construct } from 'constructs';
import type { AnyKind } from '../../constructs/kind/kind';
import { CustomResource } from '../../constructs/crd';

/** What {@link Samples} are made of. */
export interface SamplesProps {
  readonly kinds: readonly AnyKind[];
  /** Namespace of the samples of namespaced kinds. */
  readonly namespace: string;
}

/** The samples that the kinds come with, as objects. */
export class Samples extends Chart {
  constructor(scope: Construct, id: string, { kinds, namespace }: SamplesProps) {
    super(scope, id);
    for (const kind of kinds) {
      for (const { name, labels, spec } of kind.samples) {
        const metadata = {
          name,
          ...(kind.scope === 'Cluster' ? {} : { namespace }),
          ...(labels === undefined ? {} : { labels: { ...labels } }),
        };
        new CustomResource(this, `${kind.crdName}-${name}`, {
          kind,
          metadata,
          ...(spec === undefined ? {} : { spec }),
        });
      }
    }
  }
}
