import { isOnThisMachine } from '../../cli/existing-cluster';

test.each([
  ['https://127.0.0.1:6443', true],
  ['https://127.10.0.1', true],
  ['https://localhost:33001', true],
  ['https://[::1]:6443', true],
  ['https://0.0.0.0:41233', true],
  ['https://kubernetes.docker.internal:6443', true],
  ['https://cluster.localhost/k8s', true],
  ['https://192.168.49.2:8443', false],
  ['https://localhost.example.com', false],
  ['https://127.0.0.1.example.com', false],
  ['https://1270.0.0.1.example.com', false],
  ['https://api.example.com:6443', false],
])('%s is on this machine: %s', (server, isLocal) => {
  expect(isOnThisMachine(server)).toBe(isLocal);
});
