import { SharedControlPlane } from '../shared-control-plane';

declare global {
  var sharedControlPlane: SharedControlPlane | undefined;
}

/** Jest's global setup for end-to-end tests. Its global teardown is close-control-plane.ts. */
export default async function serveControlPlane(): Promise<void> {
  globalThis.sharedControlPlane = await SharedControlPlane.serve();
}
