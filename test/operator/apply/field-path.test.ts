import fc from 'fast-check';
import { objectAtPath, valueAt, omitPath } from '../../../operator/apply/managed-fields';

const object = { apiVersion: 'v1', kind: 'X', metadata: { name: 'x' }, spec: { a: { b: 1, c: 2 }, d: null } };

describe('field paths', () => {
  it('read a value, or undefined where the path ends early', () => {
    expect(valueAt(object, ['spec', 'a', 'b'])).toBe(1);
    expect(valueAt(object, [])).toBe(object);
    for (const path of [
      ['status', 'a'],
      ['spec', 'd', 'e'],
      ['spec', 'a', 'b', 'c'],
    ]) {
      expect(valueAt(object, path)).toBeUndefined();
    }
  });

  it('take a field out of a copy', () => {
    const before = JSON.stringify(object);
    expect(omitPath(object, ['spec', 'a', 'b']).spec).toEqual({ a: { c: 2 }, d: null });
    expect(omitPath(object, ['spec', 'd']).spec).toEqual({ a: { b: 1, c: 2 } });
    expect(omitPath(object, ['spec'])).not.toHaveProperty('spec');
    expect(JSON.stringify(object)).toBe(before);
  });

  it('leave an object alone that has no such field', () => {
    expect(omitPath(object, ['spec', 'x', 'y'])).toBe(object);
  });

  it('nest a value so that it is read back, and gone when taken out', () => {
    const step = fc.string({ minLength: 1, maxLength: 5 }).filter((name) => name !== '__proto__');
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), fc.integer(), (path, value) => {
        const built = objectAtPath(path, value) as never;
        expect(valueAt(built, path)).toBe(value);
        expect(valueAt(omitPath(built, path), path)).toBeUndefined();
      }),
    );
  });
});
