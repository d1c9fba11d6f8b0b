/** A copy as a value makes the way over the wire: undefined fields are lost, and nothing is shared with the original. */
export function wireCopy<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}
