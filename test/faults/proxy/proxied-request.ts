/** What a request asks of the API server, in the words of its audit log and RBAC. */
export interface ProxiedRequest {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'other';
  /** `deployments.apps`, `helloapps/status.apps.anupam.com`, `configmaps`; '' for what is no resource. */
  readonly resource: string;
  readonly namespace?: string;
  /** Undefined for a collection. */
  readonly name?: string;
  /** Of what is created, which the request's line does not tell; of no Lease and no event. */
  readonly creates?: string;
  readonly url: URL;
  readonly method: string;
  /** Whether it may change an object. */
  readonly writes: boolean;
  /** Whether it is about a Lease or an event: these are renewed and told all the time, beside the work. */
  readonly beside: boolean;
  readonly body: Buffer;
}

const besideWork = new Set(['leases.coordination.k8s.io', 'events', 'events.events.k8s.io']);

/**
 * Reads a request.
 *
 * The paths are those of https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris.
 */
export function proxiedRequest(method: string, target: string, body: Buffer): ProxiedRequest {
  const url = new URL(target, 'https://api-server');
  const { resource = '', namespace, name } = resourceOf(url.pathname);
  const verb = verbOf(method, name, url.searchParams);
  const beside = besideWork.has(resource);
  const creates = verb === 'create' && !beside ? nameOfNew(body) : undefined;
  return {
    ...{ verb, resource, url, method, body },
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(creates === undefined ? {} : { creates }),
    writes: !['get', 'list', 'watch', 'other'].includes(verb),
    beside,
  };
}

/** `patch deployments.apps shop/web`; a create bears the name of what is new. */
export function sentenceOf({ verb, resource, namespace, name, creates }: ProxiedRequest): string {
  const object = [namespace, name ?? creates].filter((part) => part !== undefined).join('/');
  return [verb, resource, object].join(' ').trimEnd();
}

function nameOfNew(body: Buffer): string | undefined {
  const { metadata } = JSON.parse(body.toString('utf8')) as { readonly metadata?: { readonly name?: string } };
  return metadata?.name;
}

function verbOf(method: string, name: string | undefined, query: URLSearchParams): ProxiedRequest['verb'] {
  switch (method) {
    case 'GET':
      if (['1', 'true'].includes(query.get('watch') ?? '')) return 'watch';
      return name === undefined ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return 'delete';
    default:
      return 'other';
  }
}

interface Resource {
  readonly resource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

function resourceOf(path: string): Resource {
  const [root, ...parts] = path.split('/').slice(1).map(decodeURIComponent);
  if (root !== 'api' && root !== 'apis') return {};
  const group = root === 'api' ? '' : (parts.shift() ?? '');
  const rest = parts.slice(1); // the version
  const namespace = rest[0] === 'namespaces' && rest.length > 2 ? rest[1] : undefined;
  const [plural, name, subresource] = namespace === undefined ? rest : rest.slice(2);
  if (plural === undefined) return {};
  const qualified = [subresource === undefined ? plural : `${plural}/${subresource}`, group].filter(
    (part) => part !== '',
  );
  return {
    resource: qualified.join('.'),
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
  };
}
