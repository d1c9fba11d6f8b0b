/**
 * Compares two resourceVersions: negative when `a` is older, 0 when they are the same, positive when `a` is newer.
 *
 * They are decimal numbers of up to 128 bits without leading zeros, so the longer is the greater, and among equally long ones the
 * order of the characters decides. The empty string is older than any.
 *
 * Source: KEP-5504, comparable resource versions; before that, etcd's revisions.
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
