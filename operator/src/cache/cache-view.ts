import type { ObjectCache } from './object-cache';

/** What reconciles see of the cache of a type, whether it covers the cluster or a few namespaces. */
export type CacheView = Pick<
  ObjectCache,
  | 'type'
  | 'size'
  | 'get'
  | 'list'
  | 'byOwner'
  | 'byIndex'
  | 'onEvent'
  | 'onChange'
  | 'trackWrite'
  | 'observeWrite'
  | 'reproject'
>;
