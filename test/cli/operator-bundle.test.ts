import { operatorFor } from '../../cli/operator-bundle';
import { Cluster, HelloApp, Kubeconfig } from '../../constructs/kinds';
import { kindredProject } from '../support/kindred-project';

test.each([
  [[], 'operator'],
  [['--help'], 'operator'],
  [['--kinds'], 'operator'],
  [['--kinds=nonsense', '--unknown=1', 'positional'], 'operator'],
  [[`--kinds=${HelloApp.crdName}`, '--log-level', 'debug'], 'operator'],
  [[`--kinds=${Cluster.crdName}`], 'provisioner'],
  [['--kinds', `${HelloApp.crdName}, ${Kubeconfig.crdName}`, '--runs=1'], 'provisioner'],
])('kindred run %j becomes the %s', (args, name) => {
  expect(operatorFor(kindredProject, args).name).toBe(name);
});
