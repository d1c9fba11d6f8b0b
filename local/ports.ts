import { createServer } from 'node:net';
import { codeOf, LocalControlPlaneError } from './assets/errors';

/** The only address that anything listens on. */
export const loopback = '127.0.0.1';

/**
 * A port that was free a moment ago. Another program may take it before it is used; then the caller has to
 * request another.
 */
export async function freePort(): Promise<number> {
  return listenOnce(0);
}

/**
 * Checks that a port can be listened on.
 *
 * @param advice - what the user can do otherwise, without a full stop
 * @throws LocalControlPlaneError when it is taken or not permitted
 */
export async function requireFree(
  port: number,
  advice = 'Choose another port, or leave it out to get a free one',
): Promise<void> {
  try {
    await listenOnce(port);
  } catch (error) {
    const why = codeOf(error) === 'EADDRINUSE' ? 'is taken' : 'cannot be listened on';
    throw new LocalControlPlaneError(`port ${port} on ${loopback} ${why}. Nothing was started. ${advice}.`, {
      cause: error,
    });
  }
}

function listenOnce(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host: loopback, exclusive: true }, () => {
      const address = server.address();
      server.close(() => {
        if (typeof address === 'object' && address !== null) resolve(address.port);
        else reject(new LocalControlPlaneError('listening gave no port'));
      });
    });
  });
}
