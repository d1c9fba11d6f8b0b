/** What the harness reads of an event of the API server's audit log (audit.k8s.io/v1). */
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
}

/** A rule of a Role or ClusterRole. */
export interface GrantedRule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly verbs: readonly string[];
}

const reads = new Set(['get', 'list', 'watch']);

/** What one user asked of the API server, from its audit log. */
export class OperatorAuditLog {
  private readonly requests: readonly AuditedRequest[];

  constructor(events: readonly AuditedRequest[], user: string) {
    this.requests = events.filter(({ user: { username } }) => username === user);
  }

  /**
   * Its writes as sentences, `patch deployments.apps shop/web 200`, oldest first; the Lease that it renews all the time is left
   * out.
   */
  writes(): readonly string[] {
    return this.ended()
      .filter(({ verb, objectRef }) => !reads.has(verb) && objectRef?.resource !== 'leases')
      .map(describeRequest);
  }

  /** How many writes, by verb, resource and code: `{ 'patch deployments.apps 200': 2 }`. */
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
   * What it was not allowed to do, with the server's words; empty in a well installed platform. That nothing may be created in a
   * namespace which is being deleted is no matter of permissions, and not among them.
   */
  refusals(): readonly string[] {
    return this.ended()
      .filter(({ responseStatus }) => responseStatus?.code === 403)
      .filter(({ responseStatus }) => responseStatus?.message?.endsWith('because it is being terminated') !== true)
      .map((request) => `${describeRequest(request)}: ${request.responseStatus?.message ?? ''}`);
  }

  /** What was granted and never asked for: `patch deployments.apps`, sorted. */
  unusedRules(rules: readonly GrantedRule[]): readonly string[] {
    // A watch that runs has started only.
    const used = new Set(this.requests.map(({ verb, objectRef }) => `${verb} ${resourceOf(objectRef)}`));
    const granted = rules.flatMap(({ verbs, resources = [], apiGroups = [] }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${qualified(resource, group)}`)),
      ),
    );
    return [...new Set(granted)].filter((grant) => !used.has(grant)).sort();
  }

  private ended(): readonly AuditedRequest[] {
    return this.requests.filter(({ stage }) => stage === 'ResponseComplete');
  }
}

function describeRequest({ verb, objectRef, responseStatus }: AuditedRequest): string {
  const name = [objectRef?.namespace, objectRef?.name].filter((part) => part !== undefined).join('/');
  return `${verb} ${resourceOf(objectRef)} ${name} ${String(responseStatus?.code)}`;
}

function resourceOf(ref: AuditedRequest['objectRef']): string {
  const { resource = '', subresource, apiGroup = '' } = ref ?? {};
  return qualified(subresource === undefined ? resource : `${resource}/${subresource}`, apiGroup);
}

/** `deployments.apps`, `helloapps/status.apps.anupam.com`, `configmaps`. */
function qualified(resource: string, group: string): string {
  return group === '' ? resource : `${resource}.${group}`;
}
