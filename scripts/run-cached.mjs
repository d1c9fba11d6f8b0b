import { createHash } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire, Module } from 'node:module';
import { dirname } from 'node:path';
import { Script } from 'node:vm';

/** Length in bytes of the SHA-256 before V8's data in the cache. */
const DIGEST = 32;

/**
 * Runs a CommonJS bundle as Node would, with the code that a former run has compiled. That code is in the
 * file `cache`, which is written when a run has succeeded.
 *
 * Guarantees: the cache is used only for the very text that it was compiled from, of which V8 itself compares
 * only the length. A cache of another version of Node is not used, but replaced. If the cache cannot be
 * written, the run still succeeds.
 *
 * @throws what the bundle throws while it loads
 */
export function runCached(bundle, cache) {
  const source = readFileSync(bundle, 'utf8');
  const digest = createHash('sha256').update(source).digest();
  const cachedData = read(cache, digest);
  // The first line may name the program that runs it.
  const script = new Script(Module.wrap(source.replace(/^#!.*/, '')), { filename: bundle, cachedData });
  if (cachedData === undefined || script.cachedDataRejected) {
    // At the end, when everything that a run needs has been compiled.
    process.once('exit', (code) => {
      if (code === 0) write(cache, Buffer.concat([digest, script.createCachedData()]));
    });
  }
  const module = new Module(bundle);
  module.filename = bundle;
  script.runInThisContext()(module.exports, createRequire(bundle), module, bundle, dirname(bundle));
}

function read(cache, digest) {
  try {
    const bytes = readFileSync(cache);
    return bytes.subarray(0, DIGEST).equals(digest) ? bytes.subarray(DIGEST) : undefined;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Writes the file atomically, since another run may read it at the same time. */
function write(cache, bytes) {
  const draft = `${cache}.${process.pid}`;
  try {
    writeFileSync(draft, bytes);
    renameSync(draft, cache);
  } catch (error) {
    process.stderr.write(`The code cache could not be written, so the next run is no faster: ${error.message}\n`);
  }
}
