/** What an element of a `LinkedList` carries. Written by the list only. */
export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
}

/**
 * A first-in-first-out list of elements that carry their own links, so that one can be removed from the
 * middle in O(1).
 *
 * Assumptions: an element is in one list at most.
 */
export class LinkedList<T extends Linked<T>> {
  private head: T | undefined;
  private tail: T | undefined;
  private count = 0;

  get size(): number {
    return this.count;
  }

  /** The elements, the oldest first. The list must not change meanwhile. */
  *[Symbol.iterator](): Iterator<T> {
    for (let element = this.head; element !== undefined; element = element.next) yield element;
  }

  push(element: T): void {
    element.previous = this.tail;
    element.next = undefined;
    if (this.tail === undefined) this.head = element;
    else this.tail.next = element;
    this.tail = element;
    this.count++;
  }

  /** Takes the oldest element out; undefined when the list is empty. */
  shift(): T | undefined {
    const element = this.head;
    if (element !== undefined) this.remove(element);
    return element;
  }

  remove(element: T): void {
    if (element.previous === undefined) this.head = element.next;
    else element.previous.next = element.next;
    if (element.next === undefined) this.tail = element.previous;
    else element.next.previous = element.previous;
    element.previous = undefined;
    element.next = undefined;
    this.count--;
  }
}
