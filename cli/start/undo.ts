import { messageOf } from '../../local/errors';

/** What has to be undone, the last first. */
export class Undo {
  private readonly steps: { readonly what: string; readonly undo: () => Promise<void> }[] = [];

  /** @param what - names it in errors: `stop the operator` */
  add(what: string, undo: () => Promise<void>): void {
    this.steps.push({ what, undo });
  }

  /**
   * Undoes everything; a step that fails does not keep the others from their turn.
   *
   * @throws AggregateError with what failed
   */
  async run(): Promise<void> {
    const errors: unknown[] = [];
    for (const { what, undo } of this.steps.splice(0).reverse()) {
      try {
        await undo();
      } catch (cause) {
        errors.push(new Error(`could not ${what}: ${messageOf(cause)}`, { cause }));
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, errors.map(messageOf).join('; '));
  }
}
