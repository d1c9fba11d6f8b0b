import { Chart } from 'cdk8s';
import { k8s } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { CustomResourceDefinition } from '../crd';
import { NamespaceGuardrails, guardrailProblems, unknownFieldProblems } from '../guardrails/namespace-guardrails';
import type { Problem } from '../kube/errors';
import { isObject } from '../kube/kube-object';
import { nameProblem } from '../kube/names';
import {
  InvalidPropsError,
  OperatorDeployment,
  PLATFORM_MANAGED_BY,
  WebhookCertificate,
  hasMultipleVersions,
  namespaceListProblems,
  operatorLabels,
  operatorProblems,
} from '../operator';
import { AccessRoles, LeaderElectionRole, OperatorRole, extraRulesProblems } from '../rbac';
import {
  DEFAULT_NAMESPACE,
  INJECT_CA_FROM,
  conversionProblems,
  toGuardedNamespace,
  operatorObjectName,
  toConversionServing,
  conversionWebhookFor,
  type PlatformOperator,
  type PlatformProps,
} from './platform-props';
import { STATE_NAMESPACE_FLAG } from './provisioner';

/** Labels of what belongs to the platform as a whole. */
const platformLabels = {
  'app.kubernetes.io/name': 'kindred',
  'app.kubernetes.io/part-of': 'kindred',
  'app.kubernetes.io/managed-by': PLATFORM_MANAGED_BY,
};

/**
 * Everything that a cluster needs to serve the given kinds: the namespace, the CRDs, permissions, the
 * operators, and guardrails for chosen namespaces.
 *
 * Guarantees: each group depends on the one before it (namespace, CRDs, permissions, operators), so they are
 * created in that order, and an operator is deleted before what its finalizers need. Every object's name
 * comes from the props, none from its path.
 *
 * Assumptions: one platform per cluster, since CRDs and ClusterRoles are cluster-wide.
 *
 * Errors: InvalidPropsError with all that is wrong with the props, such as a kind claimed by two operators,
 * or an operator that keeps its state in another namespace.
 */
export class Platform extends Chart {
  /** Namespace of the operators. */
  readonly operatorNamespace: string;
  /** The CRDs, one per kind. */
  readonly customResourceDefinitions: readonly CustomResourceDefinition[];
  /** The operators, in the order of the props. */
  readonly operators: readonly OperatorDeployment[];

  constructor(scope: Construct, id: string, props: PlatformProps) {
    super(scope, id);
    const problems = platformProblems(props);
    if (problems.length > 0) throw new InvalidPropsError(`Platform ${this.node.path}`, problems);
    this.operatorNamespace = props.namespace ?? DEFAULT_NAMESPACE;
    const kinds = props.operators.flatMap((operator) => operator.kinds);

    const namespace = props.createNamespace === false ? undefined : this.addNamespace();
    const certificates = this.addCertificates(props, namespace);
    const crds = new Construct(this, 'crds');
    this.customResourceDefinitions = props.operators.flatMap((operator) =>
      this.addCrds(crds, operator, props, certificates.get(operator)),
    );
    const access = new Construct(this, 'access');
    for (const kind of kinds) new AccessRoles(access, kind.crdName, { kind, labels: platformLabels });
    const rbac = new Construct(this, 'rbac');
    for (const operator of props.operators) this.addPermissions(rbac, operator, props);
    const operators = new Construct(this, 'operators');
    this.operators = props.operators.map((operator) =>
      this.addOperator(operators, operator, props, certificates.get(operator)),
    );
    const guarded = this.addGuardrails(props, namespace);

    if (namespace !== undefined) crds.node.addDependency(namespace);
    access.node.addDependency(crds);
    // Roles may be in namespaces that are created together with their guardrails.
    rbac.node.addDependency(crds, ...guarded);
    operators.node.addDependency(rbac, ...certificates.values());
  }

  /** @returns the certificates requested from cert-manager, by operator */
  private addCertificates(
    { operators, conversion }: PlatformProps,
    namespace: Construct | undefined,
  ): ReadonlyMap<PlatformOperator, WebhookCertificate> {
    const converting = operators.filter((operator) => operator.kinds.some(hasMultipleVersions));
    if (conversion === undefined || !('certManager' in conversion) || converting.length === 0) return new Map();
    const group = new Construct(this, 'certificates');
    if (namespace !== undefined) group.node.addDependency(namespace);
    const { certManager } = conversion;
    const certificate = (operator: PlatformOperator): WebhookCertificate =>
      new WebhookCertificate(group, operator.name, {
        ...certManager,
        name: operatorObjectName(operator),
        namespace: this.operatorNamespace,
      });
    return new Map(converting.map((operator) => [operator, certificate(operator)]));
  }

  private addCrds(
    scope: Construct,
    operator: PlatformOperator,
    { conversion }: PlatformProps,
    certificate: WebhookCertificate | undefined,
  ): readonly CustomResourceDefinition[] {
    return operator.kinds.map((kind) => {
      const conversionWebhook = conversionWebhookFor(
        kind,
        operatorObjectName(operator),
        this.operatorNamespace,
        conversion,
      );
      const crd = new CustomResourceDefinition(scope, kind.crdName, {
        kind,
        ...(conversionWebhook === undefined ? {} : { conversionWebhook }),
      });
      if (certificate !== undefined && hasMultipleVersions(kind)) {
        crd.metadata.addAnnotation(INJECT_CA_FROM, certificate.injectCaFrom);
      }
      return crd;
    });
  }

  private addNamespace(): Construct {
    const security = ['enforce', 'audit', 'warn'].flatMap((mode) => [
      [`pod-security.kubernetes.io/${mode}`, 'restricted'],
      [`pod-security.kubernetes.io/${mode}-version`, 'latest'],
    ]);
    return new k8s.KubeNamespace(this, 'namespace', {
      metadata: {
        name: this.operatorNamespace,
        labels: { ...platformLabels, ...(Object.fromEntries(security) as Record<string, string>) },
      },
    });
  }

  private addPermissions(scope: Construct, operator: PlatformOperator, props: PlatformProps): void {
    const name = operatorObjectName(operator);
    const namespace = this.operatorNamespace;
    const common = { serviceAccount: { name, namespace }, labels: operatorLabels(name) };
    const permissions = new Construct(scope, operator.name);
    new OperatorRole(permissions, 'operator', {
      ...common,
      name,
      kinds: operator.kinds,
      ...(props.watchNamespaces === undefined ? {} : { namespaces: props.watchNamespaces }),
      ...(operator.extraRules === undefined ? {} : { extraRules: operator.extraRules }),
    });
    new LeaderElectionRole(permissions, 'leader-election', {
      ...common,
      name: `${name}-leader-election`,
      namespace,
      leaseName: operator.leaseName ?? name,
    });
  }

  private addOperator(
    scope: Construct,
    operator: PlatformOperator,
    props: PlatformProps,
    certificate: WebhookCertificate | undefined,
  ): OperatorDeployment {
    const { conversion } = props;
    return new OperatorDeployment(scope, operator.name, {
      ...operator,
      name: operatorObjectName(operator),
      namespace: this.operatorNamespace,
      ...(props.watchNamespaces === undefined ? {} : { watchNamespaces: props.watchNamespaces }),
      ...(props.monitoring === undefined ? {} : { monitoring: props.monitoring }),
      ...(conversion === undefined ? {} : { conversion: toConversionServing(conversion, certificate?.secretName) }),
    });
  }

  /** @returns the namespaces that it created */
  private addGuardrails(props: PlatformProps, operatorNamespace: Construct | undefined): readonly Construct[] {
    const group = new Construct(this, 'guardrails');
    const created: Construct[] = [];
    for (const { name, create, ...numbers } of (props.guardedNamespaces ?? []).map(toGuardedNamespace)) {
      const scope = new Construct(group, name);
      const settings = { ...numbers, namespace: name, labels: platformLabels };
      const guardrails = new NamespaceGuardrails(scope, 'guardrails', settings);
      if (create === true) {
        const namespace = new k8s.KubeNamespace(scope, 'namespace', { metadata: { name, labels: platformLabels } });
        guardrails.node.addDependency(namespace);
        created.push(namespace);
      } else if (name === this.operatorNamespace && operatorNamespace !== undefined) {
        guardrails.node.addDependency(operatorNamespace);
      }
    }
    return created;
  }
}

/** All that is wrong with the props of a platform, in the order in which they are written. */
function platformProblems(props: PlatformProps): readonly Problem[] {
  const { namespace = DEFAULT_NAMESPACE, operators } = props;
  const name = nameProblem(namespace, { format: 'dns-label' });
  return [
    ...(name === undefined ? [] : [{ path: 'namespace', message: name }]),
    ...(operators.length > 0
      ? []
      : [{ path: 'operators', message: 'it is empty: a platform needs an operator to run its kinds' }]),
    ...operators.flatMap((operator, i) => platformOperatorProblems(operator, namespace, `operators[${i}]`)),
    ...conflictProblems(operators),
    ...conversionProblems(operators, props.conversion),
    ...guardedNamespaceProblems(props),
    ...namespaceListProblems('watchNamespaces', props.watchNamespaces),
  ];
}

function platformOperatorProblems(operator: PlatformOperator, namespace: string, path: string): readonly Problem[] {
  // The name is checked here, and the settings under a placeholder: the name of its objects is not what the
  // user wrote.
  const name = nameProblem(operator.name, { format: 'dns-label', maxLength: 42 });
  const settings = operatorProblems({ ...operator, name: 'kindred', namespace: DEFAULT_NAMESPACE });
  return [
    ...(name === undefined ? [] : [{ path: `${path}.name`, message: name }]),
    ...settings.map((problem) => ({ ...problem, path: `${path}.${problem.path}` })),
    ...extraRulesProblems(`${path}.extraRules`, operator.extraRules),
    ...stateNamespaceProblems(operator, namespace, `${path}.args`),
  ];
}

/**
 * State with keys belongs in the platform's own namespace, which is guarded, and retained while it has state.
 */
function stateNamespaceProblems({ args = [] }: PlatformOperator, namespace: string, path: string): readonly Problem[] {
  // If an option is repeated, the operator uses the last one.
  const last = args.filter((arg) => arg.startsWith(STATE_NAMESPACE_FLAG)).at(-1);
  if (last === undefined || last === `${STATE_NAMESPACE_FLAG}${namespace}`) return [];
  const elsewhere = last.slice(STATE_NAMESPACE_FLAG.length);
  const message =
    `it keeps its state, which may hold keys, in "${elsewhere}", and the platform's namespace is "${namespace}": leave the argument out ` +
    `(of a provisioner: write provisioner({ namespace: '${namespace}', ... })), or give the platform the namespace "${elsewhere}"`;
  return [{ path, message }];
}

/** What two operators must not have in common: their name, their Lease, a kind. */
function conflictProblems(operators: readonly PlatformOperator[]): readonly Problem[] {
  const problems: Problem[] = [];
  const claim = (claims: Map<string, number>, what: string, path: string, i: number, why: string): void => {
    const first = claims.get(what);
    if (first === undefined) claims.set(what, i);
    else if (first !== i) {
      problems.push({
        path: `operators[${i}].${path}`,
        message: `${what} belongs to operators[${first}] ("${operators[first]?.name ?? ''}") already; ${why}`,
      });
    }
  };
  const [names, leases, kinds] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  operators.forEach((operator, i) => {
    const lease = operator.leaseName ?? operatorObjectName(operator);
    const taken = names.has(operator.name);
    claim(names, operator.name, 'name', i, 'give each operator a name of its own');
    if (!taken) claim(leases, lease, 'leaseName', i, 'of two operators with one Lease, only one would ever work');
    for (const crdName of new Set(operator.kinds.map((kind) => kind.crdName))) {
      claim(kinds, crdName, 'kinds', i, 'two operators would fight over its objects: name it once');
    }
  });
  return problems;
}

/** What is wrong with the guarded namespaces. Checks types as well, since they may come from YAML. */
export function guardedNamespaceProblems(
  props: Pick<PlatformProps, 'createNamespace' | 'guardedNamespaces' | 'namespace'>,
): readonly Problem[] {
  const { namespace = DEFAULT_NAMESPACE, createNamespace = true } = props;
  const guardedNamespaces = props.guardedNamespaces ?? [];
  const guarded: readonly unknown[] = guardedNamespaces.map(toGuardedNamespace);
  const names = guarded.map((entry) => (isObject(entry) ? entry['name'] : undefined));
  return guarded.flatMap((entry, i): readonly Problem[] => {
    const path = `guardedNamespaces[${i}]`;
    if (!isObject(entry)) return [{ path, message: 'it must be a name, or an object with a name' }];
    const { name, create = false, ...numbers } = entry;
    const problems: Problem[] = [];
    const namePath = typeof guardedNamespaces[i] === 'string' ? path : `${path}.name`;
    if (typeof name !== 'string') problems.push({ path: namePath, message: 'is required, as a text' });
    else {
      const message = nameProblem(name, { format: 'dns-label' });
      if (message !== undefined) problems.push({ path: namePath, message });
      const twice = `"${name}" is listed twice; its guardrails are one set`;
      if (names.indexOf(name) !== i) problems.push({ path, message: twice, remedy: 'remove' });
    }
    if (typeof create !== 'boolean') problems.push({ path: `${path}.create`, message: 'it must be true or false' });
    if (create === true && createNamespace && name === namespace) {
      const message = `"${namespace}" is created as the operators' namespace; leave create out`;
      problems.push({ path: `${path}.create`, message, remedy: 'remove' });
    }
    const unknown = unknownFieldProblems(path, entry, ['name', 'create', 'quota', 'containers']);
    const ofNumbers = guardrailProblems(numbers).map((problem) => ({ ...problem, path: `${path}.${problem.path}` }));
    return [...problems, ...unknown, ...ofNumbers];
  });
}
