import type { LimitName, OperatorName } from './results';

/** How each is called in tables and charts. */
export const labels: Readonly<Record<OperatorName | LimitName, string>> = {
  kindred: 'Kindred',
  tuned: 'controller-runtime, tuned',
  plain: 'controller-runtime, plain',
  same: 'bare requests (POST + apply)',
  apply: 'bare requests (apply + apply)',
};
