import type { Problem } from '../core/errors';
import { nameProblem } from '../core/names';
import { operatorDefaults } from './operator-props';
import { DEFAULT_WEBHOOK_PORT, hasVersions } from './webhook';
import type { WebhookProps } from './webhook';

/** All that is wrong with how an operator's kinds are to be converted. */
export function webhookProblems(props: WebhookProps): readonly Problem[] {
  const { kinds, conversion } = props;
  const names = kinds.filter(hasVersions).map(({ crdName }) => crdName);
  if (names.length === 0) return [];
  if (conversion === undefined) {
    const message = `${names.join(', ')} ${names.length === 1 ? 'has' : 'have'} several versions: say with which certificate the operator is to convert between them`;
    return [{ path: 'conversion', message }];
  }
  const { certSecretName, port } = conversion;
  const problems: Problem[] = [];
  const name = nameProblem(certSecretName, { format: 'dns-subdomain' });
  if (name !== undefined) problems.push({ path: 'conversion.certSecretName', message: name });
  if (port !== undefined && !(Number.isInteger(port) && port >= 1024 && port <= 65535)) {
    problems.push({ path: 'conversion.port', message: `${port} must be an integer from 1024 to 65535` });
  } else if ((port ?? DEFAULT_WEBHOOK_PORT) === (props.metricsPort ?? operatorDefaults.metricsPort)) {
    problems.push({ path: 'conversion.port', message: `${port ?? DEFAULT_WEBHOOK_PORT} is the metrics port already` });
  }
  return problems;
}
