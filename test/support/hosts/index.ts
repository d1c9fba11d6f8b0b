/** Machines for tests that run things over SSH. */
export { hostsAvailable } from './start-hosts';
export { startHosts, type Hosts, type HostsOptions } from './start-hosts';
export { FAKE_INSTALLER, buildFakeDistributions, type FakeDistributions } from './install-stand-ins';
export { startInProcessHost, type InProcessHost } from './in-process-host';
export { keyRefOf, type SshHost, type TestHost } from './ssh-host';
