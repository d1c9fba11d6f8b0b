import { parsePoint } from './crash-point';
import type { CrashPoint } from './crash-point';

const text = process.env['KINDRED_CRASH_AT'];

/** The one crash to run alone: `KINDRED_CRASH_AT='HelloApp/update/before patch deployments.apps web #2'`. */
export const only: CrashPoint | undefined = text === undefined ? undefined : parsePoint(text);
