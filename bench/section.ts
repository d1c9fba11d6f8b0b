import { summarize } from './statistics';
import { figure } from './table';

/** A part of the report: what it is about, and rows under a heading. */
export interface Section {
  readonly title: string;
  /** How the rows are to be read, in a sentence or two. */
  readonly note?: string;
  readonly heading: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Heads the cells of `spreadOf`. */
export const spread = ['median', 'min', 'max', 'rounds'];

/** What each round says, and how far the rounds lie apart. */
export function spreadOf(values: readonly number[]): readonly string[] {
  const { median, min, max } = summarize(values);
  return [...[median, min, max].map(figure), values.map(figure).join(' ')];
}
