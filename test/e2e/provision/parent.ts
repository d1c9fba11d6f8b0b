import { startHosts } from '../../support/hosts';

/** A program that starts a host, prints its address and first process, and then does nothing: hosts.test.ts ends it. */
startHosts().then(
  ({ all: [host] }) => {
    console.log(`${String(host?.address)} ${String(host?.pid)}`);
    setInterval(() => undefined, 1000);
  },
  (error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  },
);
