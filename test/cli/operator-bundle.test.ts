import { operatorFor } from '../../cli/operator-bundle';
import { Cluster, HelloApp, Kubeconfig, kinds, provisionerKinds } from '../../constructs/kinds';

const operators = [
  { name: 'operator', kinds },
  { name: 'provisioner', kinds: provisionerKinds },
].map((one) => ({ ...one, loaded: [], program: undefined }));
const project = { root: '/', name: 'kindred', version: '1', operators };

test.each([
  [[], 'operator'],
  [['--help'], 'operator'],
  [['--kinds'], 'operator'],
  [['--kinds=nonsense', '--unknown=1', 'positional'], 'operator'],
  [[`--kinds=${HelloApp.crdName}`, '--log-level', 'debug'], 'operator'],
  [[`--kinds=${Cluster.crdName}`], 'provisioner'],
  [['--kinds', `${HelloApp.crdName}, ${Kubeconfig.crdName}`, '--runs=1'], 'provisioner'],
])('kindred run %j becomes the %s', (args, name) => {
  expect(operatorFor(project, args).name).toBe(name);
});
