/** A column of `kubectl get`. `Ready` and `Age` are added to every kind's own. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  /** A JSON path such as `.spec.image`. */
  readonly jsonPath: string;
  readonly description?: string;
  /** 0 shows always, more only with `-o wide`. @default 0 */
  readonly priority?: number;
}

/** The paths behind the `scale` subresource. */
export interface ScaleSubresource {
  /** An integer field below `.spec.`. */
  readonly specReplicasPath: string;
  /** An integer field below `.status.`. */
  readonly statusReplicasPath: string;
  /** Where the selector stands as a string, below `.status.` or `.spec.`; autoscalers need it. */
  readonly labelSelectorPath?: string;
}
