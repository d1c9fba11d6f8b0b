/** Jest's global teardown for end-to-end tests. Its global setup is serve-control-plane.ts. */
export default async function closeControlPlane(): Promise<void> {
  await globalThis.sharedControlPlane?.close();
}
