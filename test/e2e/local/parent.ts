import { startControlPlane } from '../../../local';

/** A program that starts a control plane, prints its data folder (its progress goes to stderr), and then does nothing: crash.slow.test.ts ends it. */
startControlPlane().then(
  ({ dataDir }) => {
    console.log(dataDir);
    setInterval(() => undefined, 1000);
  },
  (error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  },
);
