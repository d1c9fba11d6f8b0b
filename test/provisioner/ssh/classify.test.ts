import { classifySshFailure } from '../../../provisioner/ssh/openssh';

const machine = { address: '10.0.0.7', user: 'root' };
const behind = { ...machine, bastion: { address: '10.0.0.1', user: 'jump' } };

// What OpenSSH's client says; the ones that end-to-end tests do not bring about.
test.each([
  ['ssh: connect to host 10.0.0.7 port 22: Connection refused', 'Unreachable'],
  ['ssh: connect to host 10.0.0.7 port 22: No route to host', 'Unreachable'],
  ['ssh: connect to host 10.0.0.7 port 22: Connection timed out', 'Unreachable'],
  ['kex_exchange_identification: Connection closed by remote host', 'Unreachable'],
  ['Unable to negotiate with 10.0.0.7 port 22: no matching host key type found.', 'Unreachable'],
  ['root@10.0.0.7: Permission denied (publickey,password).', 'AuthenticationFailed'],
  ['Received disconnect from 10.0.0.7 port 22:2: Too many authentication failures', 'AuthenticationFailed'],
  ['No ED25519 host key is known for kindred-machine and you have requested strict checking.', 'HostKeyMismatch'],
  ['Load key "/x": error in libcrypto\nroot@10.0.0.7: Permission denied (publickey).', 'AuthenticationFailed'],
  ['Timeout, server 10.0.0.7 not responding.', 'ConnectionLost'],
  ['client_loop: send disconnect: Broken pipe', 'ConnectionLost'],
  ['Connection to 10.0.0.7 closed by remote host.', 'ConnectionLost'],
  ['', 'ConnectionLost'],
  ['something new', 'ConnectionLost'],
])('%j means %s', (log, reason) => {
  const error = classifySshFailure({ log, stderr: '', machine });
  expect(error.reason).toBe(reason);
  expect(error.message).toContain('root@10.0.0.7');
});

test('what a script wrote decides nothing', () => {
  const stderr = 'root@10.0.0.7: Permission denied (publickey). canary';
  const error = classifySshFailure({ log: 'Connection to 10.0.0.7 closed by remote host.', stderr, machine });
  expect(error.reason).toBe('ConnectionLost');
  expect(error.message).not.toContain('canary');
});

test('what the client for the bastion says is about the bastion', () => {
  const log = 'kex_exchange_identification: Connection closed by remote host';
  const refused = classifySshFailure({ log, stderr: 'jump@10.0.0.1: Permission denied (publickey).', machine: behind });
  expect(refused.reason).toBe('AuthenticationFailed');
  expect(refused.message).toContain('the bastion jump@10.0.0.1 ');
  const closed = classifySshFailure({
    log,
    stderr: 'channel 0: open failed: connect failed: Connection refused',
    machine: behind,
  });
  expect(closed.reason).toBe('Unreachable');
  expect(closed.message).toMatch(/^root@10\.0\.0\.7 /);
});
