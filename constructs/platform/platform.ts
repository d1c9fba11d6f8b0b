import { Chart } from 'cdk8s';
import { k8s } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { CustomResourceDefinition } from '../crd';
import { NamespaceGuardrails } from '../guardrails';
import {
  InvalidPropsError,
  OperatorDeployment,
  PLATFORM_MANAGED_BY,
  WebhookCertificate,
  hasVersions,
  operatorLabels,
} from '../operator';
import { AccessRoles, LeaderElectionRole, OperatorRole } from '../rbac';
import { INJECT_CA_FROM, servingWith, webhookOf } from './platform-conversion';
import { platformProblems } from './platform-problems';
import { DEFAULT_NAMESPACE, guardedNamespace, objectNameOf } from './platform-props';
import type { PlatformOperator, PlatformProps } from './platform-props';

/** Labels of what belongs to the platform as a whole. */
const platformLabels = {
  'app.kubernetes.io/name': 'kindred',
  'app.kubernetes.io/part-of': 'kindred',
  'app.kubernetes.io/managed-by': PLATFORM_MANAGED_BY,
};

/**
 * Everything that a cluster needs to serve the given kinds: the namespace, the CRDs, who may do what, the operators, and guardrails for
 * chosen namespaces.
 *
 * Guarantees: each group depends on the one before it: namespace, CRDs, permissions, operators; so they are created in that order,
 * and an operator outlives nothing that its finalizers need. Every object is named by its props, none by its path.
 *
 * Assumptions: one platform a cluster, since CRDs and ClusterRoles are the cluster's.
 *
 * Errors: InvalidPropsError with all that is wrong with the props, such as a kind claimed by two operators, or an operator that keeps its
 * state in another namespace.
 */
export class Platform extends Chart {
  /** Namespace of the operators. */
  readonly operatorNamespace: string;
  /** The CRDs, one a kind. */
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
    // Roles may stand in namespaces that are made for their guardrails.
    rbac.node.addDependency(crds, ...guarded);
    operators.node.addDependency(rbac, ...certificates.values());
  }

  /** @returns the certificates that cert-manager is asked for, by operator */
  private addCertificates(
    { operators, conversion }: PlatformProps,
    namespace: Construct | undefined,
  ): ReadonlyMap<PlatformOperator, WebhookCertificate> {
    const converting = operators.filter((operator) => operator.kinds.some(hasVersions));
    if (conversion === undefined || !('certManager' in conversion) || converting.length === 0) return new Map();
    const group = new Construct(this, 'certificates');
    if (namespace !== undefined) group.node.addDependency(namespace);
    const { certManager } = conversion;
    const certificate = (operator: PlatformOperator): WebhookCertificate =>
      new WebhookCertificate(group, operator.name, {
        ...certManager,
        name: objectNameOf(operator),
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
      const conversionWebhook = webhookOf(kind, objectNameOf(operator), this.operatorNamespace, conversion);
      const crd = new CustomResourceDefinition(scope, kind.crdName, {
        kind,
        ...(conversionWebhook === undefined ? {} : { conversionWebhook }),
      });
      if (certificate !== undefined && hasVersions(kind)) {
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
    const name = objectNameOf(operator);
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
      name: objectNameOf(operator),
      namespace: this.operatorNamespace,
      ...(props.watchNamespaces === undefined ? {} : { watchNamespaces: props.watchNamespaces }),
      ...(props.monitoring === undefined ? {} : { monitoring: props.monitoring }),
      ...(conversion === undefined ? {} : { conversion: servingWith(conversion, certificate?.secretName) }),
    });
  }

  /** @returns the namespaces that it created */
  private addGuardrails(props: PlatformProps, operatorNamespace: Construct | undefined): readonly Construct[] {
    const group = new Construct(this, 'guardrails');
    const created: Construct[] = [];
    for (const { name, create, ...numbers } of (props.guardedNamespaces ?? []).map(guardedNamespace)) {
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
