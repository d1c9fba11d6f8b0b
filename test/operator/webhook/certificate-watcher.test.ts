import { createLogger } from '../../../operator/process/logger';
import { CertificateWatcher } from '../../../operator/webhook/certificate-watcher';
import { systemClock } from '../../../operator/process/clock';
import { eventually } from '../support/eventually';
import { CertificateDirectory } from './certificates';

const day = 24 * 3600 * 1000;
const directory = new CertificateDirectory();
const logger = createLogger({ level: 'silent' });
let wallMs = Date.now();
let watch: CertificateWatcher;

beforeEach(async () => {
  directory.renew('first');
  const clock = { ...systemClock, wallMs: () => wallMs };
  watch = await CertificateWatcher.open({ directory: directory.path, logger, everyMs: 5, clock });
});
afterEach(() => watch.stop());
afterAll(() => directory.remove());

test('a new pair is told of once, a half of one never', async () => {
  const seen: string[] = [];
  watch.follow(({ certificate }) => seen.push(certificate));
  const next = directory.authority.server('next', ['127.0.0.1']);
  directory.write('tls.crt', next.certificate);
  await new Promise((done) => setTimeout(done, 40));
  expect(seen).toEqual([]);
  directory.write('tls.key', next.key);
  await eventually(() => expect(seen).toEqual([next.certificate]));
  await new Promise((done) => setTimeout(done, 40));
  expect(seen).toEqual([next.certificate]);
  expect(watch.current.certificate).toBe(next.certificate);
});

test('an expired certificate is a problem, until a new one comes', () => {
  expect(watch.problem()).toBeUndefined();
  wallMs = Date.now() + 8 * day;
  expect(watch.problem()).toMatch(/^the certificate in .* expired at 20.*, and no new one has come$/);
});

test('nothing is told after the end', async () => {
  const seen: unknown[] = [];
  watch.follow((certificate) => seen.push(certificate));
  watch.stop();
  directory.renew('late');
  await new Promise((done) => setTimeout(done, 40));
  expect(seen).toEqual([]);
});
