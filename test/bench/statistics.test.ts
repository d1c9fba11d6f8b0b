import { quantile, summarize } from '../../bench/measures';

describe('quantile', () => {
  test.each([
    [[5], 0.99, 5],
    [[3, 1, 2], 0.5, 2],
    [[4, 1, 3, 2], 0.5, 2.5],
    [[10, 20], 0, 10],
    [[10, 20], 1, 20],
    [[0, 10, 20, 30, 40], 0.9, 36],
  ])('of %p at %p is %p', (values, q, expected) => {
    expect(quantile(values, q)).toBeCloseTo(expected, 10);
  });

  test('of nothing is no number', () => {
    expect(quantile([], 0.5)).toBeNaN();
  });

  test('leaves the values in their order', () => {
    const values = [3, 1, 2];
    quantile(values, 0.5);
    expect(values).toEqual([3, 1, 2]);
  });
});

test('a summary tells the number, the extremes and what lies between', () => {
  const values = Array.from({ length: 101 }, (_, i) => 100 - i);
  expect(summarize(values)).toEqual({ count: 101, min: 0, median: 50, p99: 99, max: 100 });
});
