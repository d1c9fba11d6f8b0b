import type { Exchange, WholeAnswer } from './exchange';
import type { Fault } from './fault-proxy';

/** Whether a read can be answered from an older revision: a get or a first page that asks for no version of its own. */
export function stale({ verb, url }: Exchange['request']): boolean {
  const { searchParams: query } = url;
  return (verb === 'get' || verb === 'list') && !query.has('continue') && !query.has('resourceVersion');
}

/**
 * Gets and lists are answered as the cluster stood at an older revision; what is neither passes, and so does everything once the server has
 * forgotten that revision.
 *
 * @param revision a resourceVersion, asked for with each read
 */
export function staleReads(revision: () => string): Fault {
  return async (exchange) => {
    const { request } = exchange;
    if (!stale(request)) return exchange.pass();
    const { name, url } = request;
    const query = new URLSearchParams(url.searchParams);
    query.set('resourceVersion', revision());
    query.set('resourceVersionMatch', 'Exact');
    if (name !== undefined) query.set('fieldSelector', `metadata.name=${name}`);
    const path = name === undefined ? url.pathname : url.pathname.slice(0, url.pathname.lastIndexOf('/'));
    const answer = await exchange.wholeAnswer({ target: `${path}?${query.toString()}` });
    if (answer.status !== 200) return exchange.pass();
    const found = name === undefined ? answer : onlyItem(answer);
    exchange.hurt();
    if (found === undefined) exchange.refuse(404, 'NotFound');
    else exchange.send(found);
  };
}

interface List {
  readonly kind: string;
  readonly apiVersion: string;
  readonly items: readonly object[];
}

/** The one object of a list, as a get answers it: lists of built-in types leave kind and version out of their items. */
function onlyItem(answer: WholeAnswer): WholeAnswer | undefined {
  const { kind, apiVersion, items } = JSON.parse(answer.body.toString('utf8')) as List;
  const [item] = items;
  if (item === undefined) return undefined;
  const object = { kind: kind.replace(/List$/, ''), apiVersion, ...item };
  return { ...answer, body: Buffer.from(JSON.stringify(object)) };
}

/**
 * Lists come in pages of this many objects at most, however many were asked for at once; what is no list passes.
 *
 * @param further what becomes of requests for further pages. @default they are answered, as small
 */
export function pagesOf(limit: number, further?: Fault): Fault {
  return (exchange) => {
    const { verb, url } = exchange.request;
    if (verb !== 'list' || !url.searchParams.has('limit')) return exchange.pass();
    const query = new URLSearchParams(url.searchParams);
    if (query.has('continue') && further !== undefined) return further(exchange);
    query.set('limit', String(limit));
    // That there is another page shows that the list did not come in one piece.
    if (query.has('continue')) exchange.hurt();
    return exchange.pass({ target: `${url.pathname}?${query.toString()}` });
  };
}

/** A server that knows no streaming lists: it refuses their parameters as invalid. Others go on to `then`. */
export function withoutStreamingLists(then: Fault): Fault {
  return (exchange) => {
    if (!exchange.request.url.searchParams.has('sendInitialEvents')) return then(exchange);
    exchange.refuse(400, 'BadRequest');
    return Promise.resolve();
  };
}
