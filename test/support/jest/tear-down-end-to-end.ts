/** Jest's global teardown for end-to-end tests. Its global setup is set-up-end-to-end.ts. */
export default async function tearDownEndToEnd(): Promise<void> {
  await globalThis.sharedControlPlane?.close();
}
