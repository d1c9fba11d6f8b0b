/** What chance depends on in this run; `KINDRED_SEED` repeats another one. */
export const seed: string = process.env['KINDRED_SEED'] ?? String(Date.now());

/** Tells the seed with whatever goes wrong. */
export async function withSeed<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new Error(`with KINDRED_SEED=${seed}: ${said}`, { cause: error });
  }
}
