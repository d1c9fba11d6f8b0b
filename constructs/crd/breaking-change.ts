/** Something that worked with the CRD before and does not any more. */
export interface BreakingChange {
  /** The version and field, for example `v1 spec.image`; the CRD's own field, for example `spec.scope`, otherwise. */
  readonly path: string;
  readonly message: string;
}
