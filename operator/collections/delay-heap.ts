/** What an element of a `DelayHeap` carries. */
export interface Delayed {
  /** When the element is due, in milliseconds of the monotonic clock. Not to be changed while it is in the heap. */
  readyAt: number;
  /** Breaks ties: the lower one is due first. */
  sequence: number;
  /** The element's place. Written by the heap only. */
  heapIndex: number;
}

/**
 * A binary heap of elements by due time that knows the place of each element, so that any of them can be
 * removed in O(log n).
 *
 * Assumptions: an element is in one heap at most, once.
 */
export class DelayHeap<T extends Delayed> {
  private readonly elements: T[] = [];

  get size(): number {
    return this.elements.length;
  }

  /** The element due first; it stays. */
  peek(): T | undefined {
    return this.elements[0];
  }

  push(element: T): void {
    this.elements.push(element);
    this.rise(element, this.elements.length - 1);
  }

  remove(element: T): void {
    const index = element.heapIndex;
    const last = this.elements.pop();
    element.heapIndex = -1;
    if (last === undefined || last === element) return;
    this.rise(last, index);
    this.sink(last, last.heapIndex);
  }

  clear(): void {
    this.elements.length = 0;
  }

  private rise(element: T, from: number): void {
    let index = from;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.elements[parentIndex];
      if (parent === undefined || isBefore(parent, element)) break;
      this.put(parent, index);
      index = parentIndex;
    }
    this.put(element, index);
  }

  private sink(element: T, from: number): void {
    let index = from;
    for (;;) {
      const left = this.elements[2 * index + 1];
      const right = this.elements[2 * index + 2];
      const child = right !== undefined && left !== undefined && isBefore(right, left) ? right : left;
      if (child === undefined || isBefore(element, child)) break;
      const childIndex = child.heapIndex;
      this.put(child, index);
      index = childIndex;
    }
    this.put(element, index);
  }

  private put(element: T, index: number): void {
    this.elements[index] = element;
    element.heapIndex = index;
  }
}

function isBefore(a: Delayed, b: Delayed): boolean {
  return a.readyAt < b.readyAt || (a.readyAt === b.readyAt && a.sequence < b.sequence);
}
