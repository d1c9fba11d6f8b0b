/** Which form of the fault tests runs. */
export const long = process.env['KINDRED_FAULTS'] === 'long';

/** Takes the value of the form that runs: the short one is part of `npm test`, the long one `npm run test:faults`. */
export function form<T>(values: { readonly short: T; readonly long: T }): T {
  return long ? values.long : values.short;
}
