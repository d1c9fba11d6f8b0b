import {
  LeaderElector,
  type LeaderElectionOptions,
  type LeadershipLostError,
} from '../../../operator/leader/leader-election';
import { createLogger } from '../../../operator/process/logger';
import type { FakeApi } from '../support/fake-api';
import type { ManualClock } from '../support/manual-clock';

export const leaseRef = { name: 'kindred', namespace: 'kindred-system' };

/** An elector with a log of all that it reported. */
export class Candidate {
  readonly log: string[] = [];
  readonly elector: LeaderElector;
  lostBy: LeadershipLostError | undefined;

  constructor(
    readonly identity: string,
    client: FakeApi,
    clock: ManualClock,
    options: Partial<LeaderElectionOptions> = {},
  ) {
    this.elector = new LeaderElector({
      client,
      clock,
      logger: createLogger({ level: 'silent' }),
      identity,
      leaseName: leaseRef.name,
      namespace: leaseRef.namespace,
      random: () => 0,
      onElected: () => this.log.push('elected'),
      onLost: (error) => {
        this.lostBy = error;
        this.log.push('lost');
      },
      onStatus: (leads) => this.log.push(`status ${leads}`),
      onNewLeader: (holder) => this.log.push(`sees ${holder}`),
      ...options,
    });
  }
}
