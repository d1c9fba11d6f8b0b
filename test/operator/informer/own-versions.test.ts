import { OwnVersions, type OwnVersionsOf } from '../../../operator/informer/own-writes';

const of = (version: string, key = 'n/a') => ({ version, key, uid: 'u' });

test('a version is known until the stream has come to it, or past it', () => {
  const own = new OwnVersions();
  const slot: OwnVersionsOf = {};
  for (const version of ['9', '10', '12']) own.add(slot, of(version));
  expect(own.get('10')).toEqual(of('10'));
  expect(own.confirm(slot, '10')).toBe(true);
  expect([own.get('9'), own.get('10'), own.size]).toEqual([undefined, undefined, 1]);
  expect(own.confirm(slot, '11')).toBe(false);
  expect(own.confirm(slot, '13')).toBe(false);
  expect(own.size).toBe(0);
  expect(slot.ownVersions).toBeUndefined();
});

test('what a name is forgotten with, others keep', () => {
  const own = new OwnVersions();
  const [a, b]: OwnVersionsOf[] = [{}, {}];
  own.add(a!, of('1'));
  own.add(a!, of('3'));
  own.add(b!, of('2', 'n/b'));
  own.forget(a!);
  expect(own.size).toBe(1);
  expect(own.confirm(b!, '2')).toBe(true);
  expect(own.size).toBe(0);
});
