import { createLogger, type LoggerOptions } from '../../../operator/process/logger';

function capture(options: LoggerOptions = {}): { logger: ReturnType<typeof createLogger>; lines: () => unknown[] } {
  const written: string[] = [];
  const logger = createLogger({ ...options, destination: { write: (line: string) => void written.push(line) } });
  return { logger, lines: () => written.map((line) => JSON.parse(line) as unknown) };
}

describe('createLogger', () => {
  it('writes one JSON object a line, with a word for the level and an ISO time', () => {
    const { logger, lines } = capture({ fields: { component: 'operator' } });
    logger.info({ key: 'shop/web' }, 'reconciled');
    expect(lines()).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
        component: 'operator',
        key: 'shop/web',
        msg: 'reconciled',
      },
    ]);
  });

  it('keeps to its level', () => {
    const { logger, lines } = capture({ level: 'warn' });
    logger.info('quiet');
    logger.warn('loud');
    expect(lines()).toHaveLength(1);
  });

  it('writes errors with their causes', () => {
    const { logger, lines } = capture();
    logger.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed');
    expect(JSON.stringify(lines())).toMatch(/outer.*inner/);
  });

  it('never writes what stands in known secret places', () => {
    const { logger, lines } = capture();
    const secret = 's3cr3t';
    logger.info({
      token: secret,
      user: { password: secret, 'client-key-data': secret, id_token: secret },
      request: { headers: { authorization: `Bearer ${secret}`, accept: 'application/json' } },
      headers: { cookie: secret },
      secret: { metadata: { name: 'web' }, data: { key: secret } },
      node: { sshKey: secret },
      kubeconfig: secret,
    });
    const text = JSON.stringify(lines());
    expect(text).not.toContain(secret);
    expect(text).toContain('application/json');
    expect(text).toContain('[redacted]');
  });
});
