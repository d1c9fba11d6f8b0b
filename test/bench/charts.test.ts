import { barChart, charts } from '../../bench/publish';
import { bare, resultsOf, run } from './results';

test('a bar is as long as its value, its line as its range; text is escaped', () => {
  const svg = barChart('a "b"', [
    {
      title: '1 < 2',
      bars: [
        { label: 'ours', value: 50, low: 40, high: 60, own: true },
        { label: 'most', value: 100, low: 100, high: 100, own: false },
      ],
    },
  ]);
  expect(svg).toContain('aria-label="a &quot;b&quot;"');
  expect(svg).toContain('>1 &lt; 2</text>');
  expect(svg).toContain('<rect class="own" x="220" y="40" width="225" height="16" rx="2"/>');
  expect(svg).toContain('<line class="range" x1="400" x2="490" y1="48" y2="48"/>');
  expect(svg).toContain('<rect class="other" x="220" y="66" width="450"');
});

test('bars of nothing but 0 have no length', () => {
  const bars = [{ label: 'ours', value: 0, low: 0, high: 0, own: true }];
  expect(barChart('', [{ title: '', bars }])).toContain('width="0" height="16"');
});

test('there are charts of throughput, cost and latency; suites of our operator alone are in none', () => {
  const edits = { first: [20], later: [10], request: [4] };
  const both = { operators: { kindred: run(80, {}, edits), tuned: run(40) }, limits: { same: bare(100) } };
  const alone = { objects: 20_000, rounds: [{ operators: { kindred: run(81.5) }, limits: {} }] };
  const results = resultsOf([both], {
    busy: { objects: 10, rounds: [30, 40].map((ms) => ({ kindred: { toChild: [ms, ms + 1, ms + 2], request: [5] } })) },
  });
  const made = charts({ ...results, suites: [...results.suites, alone] });
  expect([...made.keys()]).toEqual(['throughput.svg', 'cost.svg', 'latency.svg']);
  expect(made.get('throughput.svg')).toContain('objects a second, 10 objects');
  expect(made.get('cost.svg')).toContain('CPU seconds, 10 objects');
  expect(made.get('cost.svg')?.split('bare requests (POST + apply)')).toHaveLength(3); // CPU time and memory, no restart
  expect(made.get('latency.svg')).toContain('first spec edit of an object to child when idle');
  expect(made.get('latency.svg')).toContain('>20</text>');
  expect(made.get('latency.svg')).toContain('later spec edit to child when idle');
  expect(made.get('latency.svg')).toContain('>10</text>');
  expect(made.get('latency.svg')).toContain('>36</text>'); // between the medians of the two busy rounds
  expect([...made.values()].join('')).not.toContain('20000');
});
