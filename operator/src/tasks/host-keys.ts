/**
 * Where host keys are written down that were met and trusted, for machines whose key nobody gave. Whoever answers first at the address is
 * trusted for good: give host keys where you can.
 */
export interface HostKeyStore {
  /** @returns the key that was recorded for the endpoint */
  get(endpoint: Endpoint): Promise<string | undefined>;
  /** Resolves once it is durable: nothing is sent to the machine before. */
  put(endpoint: Endpoint, hostKey: string): Promise<void>;
}

/** Where an SSH server listens. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
}
