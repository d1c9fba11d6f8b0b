import { writeFileSync } from 'node:fs';

/** Tells the service manager that the service is up. */
export function ready(): void {
  const file = process.env['READY_FILE'];
  if (file !== undefined) writeFileSync(file, String(process.pid));
}
