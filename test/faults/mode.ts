/** Which form of the fault tests runs. */
export const isLongMode = process.env['KINDRED_FAULTS'] === 'long';

/** Takes the value of the form that runs: `npm test` and `npm run test:all` run the short one, `npm run test:long` the long one. */
export function byMode<T>(values: { readonly short: T; readonly long: T }): T {
  return isLongMode ? values.long : values.short;
}
