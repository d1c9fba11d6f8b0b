import { EventEmitter } from 'node:events';
import { createLogger } from '../../../operator/process/logger';
import { installShutdown, ShutdownReason, type Shutdown } from '../../../operator/process/lifecycle';
import { ManualClock } from '../support/manual-clock';

class FakeProcess extends EventEmitter {
  readonly exits: number[] = [];
  exit = (code: number): void => void this.exits.push(code);
}

describe('installShutdown', () => {
  let host: FakeProcess;
  let clock: ManualClock;
  let shutdown: Shutdown;

  beforeEach(() => {
    host = new FakeProcess();
    clock = new ManualClock();
    shutdown = installShutdown({ process: host, clock, logger: createLogger({ level: 'silent' }) });
  });

  it('aborts its signal at the first SIGTERM or SIGINT, and does not exit', () => {
    expect(shutdown.signal.aborted).toBe(false);
    expect(shutdown.remainingMs()).toBe(25_000);
    host.emit('SIGTERM', 'SIGTERM');
    expect(shutdown.signal.reason).toEqual(new ShutdownReason('received SIGTERM'));
    clock.advanceSync(5000);
    expect(shutdown.remainingMs()).toBe(20_000);
    expect(host.exits).toEqual([]);
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ])('exits at once at a second signal: %s with %i', (name, code) => {
    host.emit('SIGINT', 'SIGINT');
    host.emit(name, name);
    expect(host.exits).toEqual([code]);
  });

  it('exits with 1 when the deadline has passed', () => {
    host.emit('SIGTERM', 'SIGTERM');
    clock.advanceSync(24_999);
    expect(host.exits).toEqual([]);
    clock.advanceSync(1);
    expect(host.exits).toEqual([1]);
    expect(shutdown.remainingMs()).toBe(0);
  });

  it('can be asked for by the program, once, with a cause; a signal then is the second', () => {
    const cause = new Error('the Lease');
    shutdown.request('leadership was lost', cause);
    shutdown.request('again');
    expect(shutdown.signal.reason).toMatchObject({ message: 'leadership was lost', cause });
    host.emit('SIGTERM', 'SIGTERM');
    expect(host.exits).toEqual([143]);
  });

  it('leaves nothing behind', () => {
    host.emit('SIGTERM', 'SIGTERM');
    shutdown.dispose();
    expect(host.listenerCount('SIGTERM') + host.listenerCount('SIGINT')).toBe(0);
    expect(clock.timerCount).toBe(0);
  });
});
