import { RBAC_GROUP } from '../constructs/kube/policy-rule';

/** The fields of an event of the API server's audit log (audit.k8s.io/v1) that are used here. */
export interface AuditedRequest {
  readonly stage: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number; readonly message?: string };
  /** `authorization.k8s.io/decision` is `allow` or `forbid`. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A rule of a Role or ClusterRole. */
export interface GrantedRule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly verbs: readonly string[];
}

/** The requests of one user, from the API server's audit log. */
export class OperatorAuditLog {
  private readonly requests: readonly AuditedRequest[];

  constructor(events: readonly AuditedRequest[], user: string) {
    this.requests = events.filter(({ user: { username } }) => username === user);
  }

  /**
   * The user's writes as sentences, `patch deployments.apps shop/web 200`, oldest first; without the Lease,
   * which is renewed all the time. Dry runs are among them: `patch (dry run) deployments.apps shop/web 200`.
   */
  writes(): readonly string[] {
    return this.ended()
      .filter(({ verb, objectRef }) => !reads.has(verb) && objectRef?.resource !== 'leases')
      .map(describeRequest);
  }

  /** The number of writes by verb, resource and code: `{ 'patch deployments.apps 200': 2 }`. */
  writesByResource(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { verb, objectRef, responseStatus } of this.ended()) {
      if (reads.has(verb)) continue;
      const key = `${verb} ${resourceOf(objectRef)} ${String(responseStatus?.code)}`;
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  }

  /**
   * The requests that the server denied, with its messages; empty when the platform is installed correctly.
   * Creating objects in a namespace that is being deleted is left out: that is not a matter of permissions.
   */
  refusals(): readonly string[] {
    return (
      this.ended()
        .filter(({ responseStatus }) => responseStatus?.code === 403)
        // Not by an admission plugin, such as a quota.
        .filter(({ annotations }) => annotations?.['authorization.k8s.io/decision'] !== 'allow')
        .filter(({ responseStatus }) => responseStatus?.message?.endsWith('because it is being terminated') !== true)
        .map((request) => `${describeRequest(request)}: ${request.responseStatus?.message ?? ''}`)
    );
  }

  /**
   * The permissions that were granted and never used: `patch deployments.apps`, sorted. `bind` is used by
   * writing a binding; the log does not tell to which role.
   */
  unusedRules(rules: readonly GrantedRule[]): readonly string[] {
    // All stages: a running watch has no event of its completion.
    const used = new Set(this.requests.map(({ verb, objectRef }) => `${verb} ${resourceOf(objectRef)}`));
    for (const grant of this.boundGrants()) used.add(grant);
    return [...new Set(allGrants(rules))].filter((grant) => !used.has(grant)).sort();
  }

  /**
   * The resources that may be changed by these rules, and never were, sorted; roles to which it may bind, and
   * never did, as `bind clusterroles.rbac.authorization.k8s.io`. Left out are `finalizers`, which an admission plugin asks
   * for, and nobody writes; and the Lease and the events, of which the latter are written some time after what they tell.
   */
  unchangedResources(rules: readonly GrantedRule[]): readonly string[] {
    const own = /\/finalizers\.|^leases\.coordination\.k8s\.io$|^events\.events\.k8s\.io$/;
    const changeable = allGrants(rules)
      .filter((grant) => /^(create|update|patch|delete) /.test(grant))
      .map((grant) => grant.slice(grant.indexOf(' ') + 1));
    const changes = this.ended().filter(
      ({ verb, requestURI, responseStatus: { code = 0 } = {} }) =>
        !reads.has(verb) && code >= 200 && code < 300 && !requestURI.includes('dryRun=All'),
    );
    const changed = new Set(changes.map(({ objectRef }) => resourceOf(objectRef)));
    const bound = this.boundGrants();
    const unbound = allGrants(rules).filter((grant) => grant.startsWith('bind ') && !bound.includes(grant));
    const unchanged = changeable.filter((resource) => !changed.has(resource) && !own.test(resource));
    return [...new Set([...unchanged, ...unbound])].sort();
  }

  /** The permissions to bind that were used, if any: the server asks for one when a binding is written. */
  private boundGrants(): readonly string[] {
    const isBinding = ({ verb, objectRef, responseStatus: { code = 0 } = {} }: AuditedRequest): boolean =>
      !reads.has(verb) && /^(cluster)?rolebindings[.]/.test(resourceOf(objectRef)) && code >= 200 && code < 300;
    const roles = ['clusterroles', 'roles'].map((resource) => `bind ${qualified(resource, RBAC_GROUP)}`);
    return this.ended().some(isBinding) ? roles : [];
  }

  private ended(): readonly AuditedRequest[] {
    return this.requests.filter(({ stage }) => stage === 'ResponseComplete');
  }
}

/** `patch deployments.apps` for each verb and resource of the rules. */
function allGrants(rules: readonly GrantedRule[]): readonly string[] {
  return rules.flatMap(({ verbs, resources = [], apiGroups = [] }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${qualified(resource, group)}`)),
    ),
  );
}

const reads = new Set(['get', 'list', 'watch']);

function describeRequest({ verb, requestURI, objectRef, responseStatus }: AuditedRequest): string {
  const name = [objectRef?.namespace, objectRef?.name].filter((part) => part !== undefined).join('/');
  const how = requestURI.includes('dryRun=All') ? ' (dry run)' : '';
  return `${verb}${how} ${resourceOf(objectRef)} ${name} ${String(responseStatus?.code)}`;
}

function resourceOf(ref: AuditedRequest['objectRef']): string {
  const { resource = '', subresource, apiGroup = '' } = ref ?? {};
  return qualified(subresource === undefined ? resource : `${resource}/${subresource}`, apiGroup);
}

/** `deployments.apps`, `helloapps/status.apps.anupam.com`, `configmaps`. */
function qualified(resource: string, group: string): string {
  return group === '' ? resource : `${resource}.${group}`;
}
