/** Carrying out the plans of provision: scripts on machines, over SSH or here. */
export { carryOut, type CarriedOut, type CarryOutOptions, type TaskEvent } from './carry-out';
export { LocalTransport } from './local-transport';
export { SshTransport, type SshTransportOptions } from './ssh-transport';
export type { Endpoint, HostKeyStore } from './host-keys';
export { MachineTransport } from './machine-transport';
export { TaskError, type TaskFailure } from './task-error';
export type { ValueLookup } from './task-input';
export { recordable, type TaskRecord } from './task-record';
export {
  MachineError,
  type MachineFailure,
  type Transport,
  type TransportRequest,
  type TransportResult,
} from './transport';
