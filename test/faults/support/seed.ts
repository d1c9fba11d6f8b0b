/** What chance depends on in this run; `KINDRED_SEED` repeats another one. */
export const seed: string = process.env['KINDRED_SEED'] ?? String(Date.now());

// At once: a test that runs out of time throws nothing that could tell it.
process.stderr.write(
  `KINDRED_SEED=${seed} repeats what chance does in ${expect.getState().testPath ?? 'these tests'}\n`,
);

/** Tells the seed with whatever goes wrong. */
export async function withSeed<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new Error(`with KINDRED_SEED=${seed}: ${said}`, { cause: error });
  }
}
