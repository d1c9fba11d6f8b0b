import { figure, table } from '../../bench/report';

test('the first column is flush left, the others flush right', () => {
  const text = table(
    ['what', 'n'],
    [
      ['writes', '2'],
      ['CPU', '1000'],
    ],
  );
  expect(text.split('\n')).toEqual(['what        n', 'writes      2', 'CPU      1000']);
});

test('a row of another width is an error', () => {
  expect(() => table(['a', 'b'], [['1']])).toThrow('1 cells in a table of 2');
});

test.each([
  [2000, '2000'],
  [0, '0'],
  [1234.5, '1235'],
  [123.45, '123.5'],
  [12.345, '12.35'],
  [1.2345, '1.234'],
  [0.01234, '0.012'],
  [NaN, '-'],
])('%p is told as %p', (value, text) => {
  expect(figure(value)).toBe(text);
});
