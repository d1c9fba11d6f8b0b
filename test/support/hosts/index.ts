/** Machines for tests that run things over SSH. */
export { hostsAvailable } from './start-hosts';
export { startHosts, type Hosts, type HostsOptions } from './start-hosts';
export { INSTALLER, standIns, type StandIns } from './install-stand-ins';
export { startInProcessHost, type InProcessHost } from './in-process-host';
export { keyRefOf, type SshHost, type TestHost } from './ssh-host';
