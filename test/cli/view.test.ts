import { stripVTControlCharacters } from 'node:util';
import { tableLines, createView, type Screen } from '../../cli/view';
import { notYet, row } from './objects';

describe('the table', () => {
  test('lines up, and tells below why an object is not Ready', () => {
    expect(tableLines([row({ kind: 'Foo', object: 'team/a' }), notYet])).toEqual([
      'KIND      OBJECT    READY  REASON       CHILDREN',
      'Foo       team/a    True   Ready        Deployment 1/1',
      'HelloApp  team/web  False  Progressing  Deployment 0/1',
      '  team/web: Deployment "web": 0 of 1 replicas ready',
    ]);
  });

  test('of nothing is a heading', () => expect(tableLines([])).toEqual(['KIND  OBJECT  READY  REASON  CHILDREN']));

  test('never wraps and never outgrows the terminal', () => {
    const rows = Array.from({ length: 50 }, (_, i) => row({ object: `team/${i}` }));
    const lines = tableLines([...rows, notYet], { width: 30, height: 10 });
    expect(lines).toHaveLength(10);
    expect(lines.slice(0, 9).filter((line) => line.length > 30)).toEqual([]);
    expect(lines[9]).toBe('… 44 more lines');
    expect(lines[1]).toMatch(/…$/);
  });

  test('colours change no letter', () => {
    const rows = [row(), notYet, row({ ready: '-', isReady: false })];
    const colored = tableLines(rows, { color: true });
    expect(colored.join()).toContain('\u001b[');
    expect(colored.map(stripVTControlCharacters)).toEqual(tableLines(rows));
  });

  test('control characters in a message do not reach the terminal', () => {
    expect(tableLines([{ ...notYet, message: 'a\u001b[2Jb\tc' }]).at(-1)).toBe('  team/web: ab c');
  });
});

class FakeScreen implements Screen {
  text = '';
  readonly columns = 100;
  readonly rows = 24;
  constructor(readonly isTTY: boolean) {}
  write(text: string): void {
    this.text += text;
  }
  take(): string {
    const { text } = this;
    this.text = '';
    return text;
  }
}

describe('on a terminal', () => {
  const up = (lines: number): string => `\u001b[${lines}A\u001b[J`;
  const setup = () => {
    const screen = new FakeScreen(true);
    return { screen, view: createView(screen, { NO_COLOR: '1' }) };
  };

  test('the table is drawn over, and what is said stays above it', () => {
    const { screen, view } = setup();
    view.print('hello');
    expect(screen.take()).toBe('hello\n');
    view.show([notYet]);
    const [first] = [screen.take()];
    expect(first).toMatch(/^KIND/);
    view.show([row()]);
    const second = screen.take();
    expect(second.startsWith(`${up(3)}KIND`)).toBe(true);
    view.print('news');
    expect(screen.take()).toBe(`${up(2)}news\n${second.slice(up(3).length)}`);
  });

  test('after the end the table stands', () => {
    const { screen, view } = setup();
    view.show([row()]);
    view.end();
    screen.take();
    view.print('bye');
    expect(screen.take()).toBe('bye\n');
  });

  test('a dumb terminal gets lines', () => {
    const screen = new FakeScreen(true);
    createView(screen, { TERM: 'dumb' }).show([row()]);
    expect(screen.take()).toMatch(/^HelloApp team\/web Ready=True/);
  });
});

describe('elsewhere', () => {
  test('only changes are written, each in one line', () => {
    const screen = new FakeScreen(false);
    const view = createView(screen);
    view.show([notYet, row({ object: 'team/b' })]);
    expect(screen.take()).toBe(
      'HelloApp team/web Ready=False (Progressing) children: Deployment 0/1: Deployment "web": 0 of 1 replicas ready\n' +
        'HelloApp team/b Ready=True (Ready) children: Deployment 1/1\n',
    );
    view.show([notYet, row({ object: 'team/b' })]);
    expect(screen.take()).toBe('');
    view.show([row()]);
    expect(screen.take()).toBe(
      'HelloApp team/web Ready=True (Ready) children: Deployment 1/1\nHelloApp team/b is gone\n',
    );
  });
});
