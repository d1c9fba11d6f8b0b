import type { KubeObject } from '../../constructs/kube/kube-object';
import { CliError } from '../errors';
import { reasonLine, type Row } from './row';

/** Something that has rows; a `Board` is one. */
export interface Watched {
  rows(): readonly Row[];
  onChange(listener: (rows: readonly Row[]) => void): () => void;
}

/** The rows of the objects that are waited for; one that is not there yet has a row that says so. */
export function awaitedRows(awaited: readonly KubeObject[], rows: readonly Row[]): readonly Row[] {
  return awaited.map(({ kind, metadata: { name, namespace } }) => {
    const object = namespace === undefined ? name : `${namespace}/${name}`;
    return (
      rows.find((row) => row.kind === kind && row.object === object) ?? {
        ...{ kind, object, ready: '-', reason: 'Missing', children: 'none', isReady: false },
        message: 'It was applied and is not there: somebody deleted it.',
      }
    );
  });
}

/** What a person is told of objects that did not become Ready in time. */
export function notReady(rows: readonly Row[], seconds: number): string {
  const bad = rows.filter(({ isReady }) => !isReady);
  return [
    `${bad.length} of ${rows.length} objects are not Ready after ${seconds} s:`,
    ...bad.map((row) => `  ${reasonLine(row)}`),
    'Mend what the reasons say, or give them more time with --timeout=SECONDS; --log-file=FILE keeps the log of the operator.',
  ].join('\n');
}

/**
 * Resolves when all of the objects are Ready.
 *
 * @throws CliError at the deadline, with the reason of each that is not
 */
export function waitUntilReady(
  board: Watched,
  awaited: readonly KubeObject[],
  options: { readonly timeoutSeconds: number; readonly signal: AbortSignal },
): Promise<void> {
  const { timeoutSeconds, signal } = options;
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void): void => {
      clearTimeout(deadline);
      signal.removeEventListener('abort', onAbort);
      unlisten();
      settle();
    };
    const onAbort = (): void => finish(() => reject(signal.reason as Error));
    const deadline = setTimeout(() => {
      const message = notReady(awaitedRows(awaited, board.rows()), timeoutSeconds);
      finish(() => reject(new CliError(message)));
    }, timeoutSeconds * 1000);
    const look = (rows: readonly Row[]): void => {
      if (awaitedRows(awaited, rows).every(({ isReady }) => isReady)) finish(resolve);
    };
    const unlisten = board.onChange(look);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    else look(board.rows());
  });
}
