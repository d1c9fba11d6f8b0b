/**
 * What has to happen before this process ends, whichever way it ends: on exit, and on the signals that end it. (After
 * SIGKILL nothing can run here; the guards of the parts and the next start see to that case.)
 */
const acts = new Set<() => void>();
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Registers a synchronous act; the function that is returned takes it back. */
export function beforeExit(act: () => void): () => void {
  if (acts.size === 0) listen();
  acts.add(act);
  return () => {
    acts.delete(act);
    if (acts.size === 0) unlisten();
  };
}

function listen(): void {
  process.on('exit', runAll);
  for (const signal of signals) process.on(signal, onSignal);
}

function unlisten(): void {
  process.off('exit', runAll);
  for (const signal of signals) process.off(signal, onSignal);
}

function runAll(): void {
  for (const act of acts) act();
  acts.clear();
}

/** Does the acts, then lets the signal do what it would have done without us. */
function onSignal(signal: NodeJS.Signals): void {
  // A program with handlers of its own ends when it has finished, and usually calls stop() on its way.
  if (process.listenerCount(signal) > 1) return;
  runAll();
  unlisten();
  process.kill(process.pid, signal);
}
