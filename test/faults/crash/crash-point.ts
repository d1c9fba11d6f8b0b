import { createHash } from 'node:crypto';
import type { ProxiedRequest } from '../../../testing/fault-proxy/exchange';

/** The life that the provisioner lives, beside those of the operator's kinds. */
export const PROVISIONER_LIFE = 'Cluster';

/** A write that an operator makes in a stage of a life. */
export interface WriteAddress {
  readonly stage: string;
  readonly verb: string;
  /** `deployments.apps`, `helloapps/status.apps.anupam.com`. */
  readonly resource: string;
  readonly name: string;
  /**
   * From 1: one more than the writes of this verb to this object that the server has accepted in the stage. Refused ones do not count, since
   * a Conflict comes by chance.
   */
  readonly occurrence: number;
  /** The same for writes that say the same, though versions and times have gone on; undefined where it is not known. */
  readonly content?: string;
}

/** `before`: the write never reaches the server. `after`: it takes effect, and the operator never learns of it. */
export type CrashTiming = 'before' | 'after';

/** Where an operator is stopped. */
export interface CrashPoint {
  readonly life: string;
  readonly moment: CrashTiming;
  readonly write: WriteAddress;
}

/** The object and verb of a write, whenever in its stage it comes: `update: patch deployments.apps web`. */
export function writeTarget({ stage, verb, resource, name }: Omit<WriteAddress, 'occurrence'>): string {
  return `${stage}: ${verb} ${resource} ${name}`;
}

/** `HelloApp/update/before patch deployments.apps web #2`. */
export function formatCrashPoint({ life, moment, write }: CrashPoint): string {
  const { stage, verb, resource, name, occurrence } = write;
  return `${life}/${stage}/${moment} ${verb} ${resource} ${name} #${String(occurrence)}`;
}

/** Crash points, one a line. */
export function formatCrashPoints(points: readonly CrashPoint[]): string {
  return points.length === 0 ? '  none' : points.map((point) => `  ${formatCrashPoint(point)}`).join('\n');
}

/** @throws Error when the text is no crash point */
function parseCrashPoint(text: string): CrashPoint {
  const parts = /^([\w-]+)\/([\w-]+)\/(before|after) (\w+) (\S+) (\S+) #(\d+)$/.exec(text);
  if (parts === null) {
    throw new Error(`"${text}" is no crash point; one reads "HelloApp/update/before patch deployments.apps web #2"`);
  }
  const [, life = '', stage = '', moment = '', verb = '', resource = '', name = '', occurrence = ''] = parts;
  return {
    life,
    moment: moment as CrashTiming,
    write: { stage, verb, resource, name, occurrence: Number(occurrence) },
  };
}

/** The name of the object that a write is about, without the number of this process, which some names bear. */
export function nameIn({ name, createdName = '?' }: ProxiedRequest): string {
  return (name ?? createdName).replace(`-${String(process.pid)}`, '');
}

/** See `WriteAddress.content`. */
export function contentIn({ url, body }: ProxiedRequest): string {
  const text = body.toString().replaceAll(/"\d+"|"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, '""');
  return createHash('sha256').update(`${url.search}\n${text}`).digest('hex');
}

/** Says of each write, as it comes, whether the operator is stopped there. */
export type CrashSelector = (write: WriteAddress) => CrashTiming | undefined;

/** A life without a crash. */
export const noCrash: CrashSelector = () => undefined;

/** A crash at each of these points, once. */
export function atPoints(...points: readonly CrashPoint[]): CrashSelector {
  const open = new Set(points);
  return (write) => {
    const here = [...open].find((point) => {
      return writeTarget(point.write) === writeTarget(write) && point.write.occurrence === write.occurrence;
    });
    if (here !== undefined) open.delete(here);
    return here?.moment;
  };
}

/**
 * A crash before each write, and another one after it, when the next operator has come to it. A write that is merely repeated, because its
 * effect cannot be told from what stands, passes: nobody would ever come further.
 */
export function atEveryWrite(): CrashSelector {
  const heldBack = new Set<string>();
  const done = new Set<string>();
  return (write) => {
    const key = `${writeTarget(write)} ${write.content ?? ''}`;
    if (done.has(key)) return undefined;
    const moment = heldBack.has(key) ? 'after' : 'before';
    (moment === 'after' ? done : heldBack).add(key);
    return moment;
  };
}

const text = process.env['KINDRED_CRASH_AT'];

/** The one crash to run alone: `KINDRED_CRASH_AT='HelloApp/update/before patch deployments.apps web #2'`. */
export const crashPointFromEnv: CrashPoint | undefined = text === undefined ? undefined : parseCrashPoint(text);
