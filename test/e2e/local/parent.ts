import { startControlPlane } from '../../../local';

/** A program that starts a control plane, prints its data folder (its progress goes to stderr), and then does nothing: a test ends it. NODES is the number of nodes that run containers. */
startControlPlane({ nodes: Number(process.env['NODES'] ?? 0) }).then(
  ({ dataDir }) => {
    console.log(dataDir);
    setInterval(() => undefined, 1000);
  },
  (error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  },
);
