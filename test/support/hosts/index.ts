/** Machines for tests that run things over SSH. */
export { hostsAvailable } from './available';
export { startHosts, type Hosts, type HostsOptions } from './start-hosts';
export { INSTALLER, standIns, type StandIns } from './stand-ins/install-stand-ins';
export { startInProcessHost, type InProcessHost } from './in-process-host';
export { keyRefOf, type SshHost, type TestHost } from './ssh-host';
