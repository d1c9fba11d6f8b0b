import { createHash } from 'node:crypto';

/** The SHA-256 of a text's UTF-8, in hexadecimal, by which a changed text is recognised. */
export function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
