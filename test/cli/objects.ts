import type { KubeObject } from '../../constructs/kube/kube-object';
import type { Row } from '../../cli/object-watcher';

/** An object of a kind, with a Ready condition if one is given. */
export function helloApp(ready?: Record<string, unknown>, metadata: Record<string, unknown> = {}): KubeObject {
  return {
    apiVersion: 'apps.anupam.com/v1',
    kind: 'HelloApp',
    metadata: { name: 'web', namespace: 'team', generation: 2, ...metadata },
    ...(ready === undefined
      ? {}
      : {
          status: {
            conditions: [
              { type: 'Stalled', status: 'False' },
              { type: 'Ready', ...ready },
            ],
          },
        }),
  };
}

export function child(kind: string, more: Record<string, unknown> = {}): KubeObject {
  return { apiVersion: 'v1', kind, metadata: { name: 'x', namespace: 'team' }, ...more };
}

export function row(more: Partial<Row> = {}): Row {
  return {
    kind: 'HelloApp',
    object: 'team/web',
    ready: 'True',
    reason: 'Ready',
    message: '',
    children: 'Deployment 1/1',
    isReady: true,
    ...more,
  };
}

export const notYet = row({
  ready: 'False',
  reason: 'Progressing',
  message: 'Deployment "web": 0 of 1 replicas\nready',
  children: 'Deployment 0/1',
  isReady: false,
});
