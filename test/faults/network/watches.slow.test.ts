import type { ResourceType } from '../../../constructs/kube/resource-type';
import { useTestEnv } from '../../support/test-env';
import { byMode } from '../mode';
import type { Fault, SeenRequest } from '../../../testing/fault-proxy/fault-proxy';
import {
  cutEvents,
  delayedEvents,
  gone,
  goneInStream,
  dropResponse,
  limitPageSize,
  withProbability,
  staleReads,
  withoutStreamingLists,
} from '../../../testing/fault-proxy/faults';
import { gets, pages, seed, testUnderFaults, watches } from '../support/under-fault';

jest.setTimeout(byMode({ short: 240_000, long: 900_000 }));

const env = useTestEnv({ proxy: true, operator: false });

const CONFIG_MAPS: ResourceType = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', scope: 'Namespaced' };

/** As the cluster stands when a fault begins, reads see it until that ends. */
function fromTheBeginning(): Fault {
  let revision: Promise<string> | undefined;
  return async (exchange) => {
    revision ??= env.client.list(CONFIG_MAPS, { limit: 1 }).then(({ resourceVersion }) => resourceVersion);
    const asOf = await revision;
    return staleReads(() => asOf)(exchange);
  };
}

const forgotten = withProbability(seed, 0.7, gone);
const ended = withProbability(seed, 0.7, cutEvents(30, { cleanly: true }));

/** Watches end all the time; whoever comes back finds its version forgotten. */
const forgetful: Fault = (exchange) =>
  (exchange.request.url.searchParams.has('resourceVersion') ? forgotten : ended)(exchange);

const late = delayedEvents(1_500);
const lost = withProbability(seed, 0.5, dropResponse);
const before = fromTheBeginning();
const olderLists = fromTheBeginning();

/**
 * Answers to creates are lost and events are late, so that what stands under a name already only a get can tell; and that is answered from
 * an older revision.
 */
const behind: Fault = (exchange) => {
  const { verb } = exchange.request;
  if (verb === 'watch') return late(exchange);
  return verb === 'create' ? lost(exchange) : before(exchange);
};

const isSuccess = (status = 0): boolean => status >= 200 && status < 300;
const isCacheList = ({ verb, metadataOnly }: SeenRequest): boolean => verb === 'list' && !metadataOnly;

/** A list that fills a cache comes from before a write of the same type, whose answer the operator has got: for the cache time runs backwards. */
function cachesGoBack(faulted: readonly SeenRequest[]): boolean {
  // The revision that all reads see is older than the first of them.
  const seenAt = faulted.find(({ verb }) => verb !== 'watch')?.at ?? Infinity;
  const written = env.proxy.requests.filter(({ writes, at, status }) => writes && at > seenAt && isSuccess(status));
  return faulted
    .filter(isCacheList)
    .some((list) => written.some(({ resource, ended = Infinity }) => resource === list.resource && ended < list.at));
}

testUnderFaults(env, [
  ['watches are cut in the middle of an event, again and again', cutEvents(3), { watches }],
  ['watches end in the middle of an event, though HTTP is content', cutEvents(3, { cleanly: true }), { watches }],
  ['events come a second and a half late', delayedEvents(1_500), { watches }],
  ['watches end, and their version is gone, 410', forgetful, { watches }],
  ['watches say in the stream that their version is gone', withProbability(seed, 0.7, goneInStream(5)), { watches }],
  ['gets and lists are answered from an older revision', behind, { gets }],
  [
    'there are no streaming lists, pages are small, and the further ones are gone',
    (exchange) =>
      exchange.request.verb === 'watch' ? withoutStreamingLists(forgetful)(exchange) : limitPageSize(2, gone)(exchange),
    { watches, pages },
  ],
  [
    'there are no streaming lists, versions are gone, and lists are answered from an older revision',
    (exchange) =>
      exchange.request.verb === 'watch' ? withoutStreamingLists(goneInStream(3))(exchange) : olderLists(exchange),
    { watches, 'caches by lists from before': cachesGoBack },
  ],
]);
