/**
 * A `metav1.MicroTime`: RFC 3339 in UTC with exactly six fractional digits. The API server refuses three, which is what
 * `toISOString` gives.
 *
 * @param wallMs milliseconds since the Unix epoch.
 */
export function microTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('Z', '000Z');
}
