/** Something that the process needs cannot be had: a port, a certificate. The message says what to do; a stack would say no more. */
export class StartupError extends Error {
  override readonly name = 'StartupError';
}
