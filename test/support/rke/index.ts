/** RKE for tests: a stand-in for its program, and machines that keep its state. */
export { installRke, type RkeCall, type RkeControl, type RkeStandIn } from './install';
export { startSshHome, type SshHome } from './ssh-home';
