/** What end-to-end tests need: a control plane per test file, kubectl, and waiting with a reason. */
export { useControlPlane, type TestControlPlane } from './testing/use-control-plane';
export { kubectl, type KubectlOptions, type KubectlResult } from './testing/kubectl';
export { waitFor, type WaitOptions } from './testing/wait-for';
