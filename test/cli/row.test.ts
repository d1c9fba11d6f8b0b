import { reasonLine, rowOf } from '../../cli/object-watcher';
import { child, helloApp, notYet } from './objects';

const ready = { status: 'True', reason: 'Ready', message: 'All.', observedGeneration: 2 };

describe('readiness', () => {
  test('Ready=True of the present generation', () => {
    expect(rowOf(helloApp(ready), [])).toMatchObject({
      object: 'team/web',
      ready: 'True',
      reason: 'Ready',
      isReady: true,
    });
  });

  test('Ready=True without a generation is believed', () => {
    expect(rowOf(helloApp({ ...ready, observedGeneration: undefined }), [])).toMatchObject({ isReady: true });
  });

  test('Ready=True of an earlier generation is not enough', () => {
    expect(rowOf(helloApp({ ...ready, observedGeneration: 1 }), [])).toMatchObject({
      ready: 'Unknown',
      reason: 'Waiting',
      message: 'The operator has reported on generation 1 of 2 so far.',
      isReady: false,
    });
  });

  test.each(['False', 'Unknown'])('Ready=%s is not ready, in the words of the operator', (status) => {
    const condition = { ...ready, status, reason: 'ErrResourceExists', message: 'taken' };
    expect(rowOf(helloApp(condition), [])).toMatchObject({
      ready: status,
      reason: 'ErrResourceExists',
      message: 'taken',
      isReady: false,
    });
  });

  test('no condition yet', () => {
    expect(rowOf(helloApp(), [])).toMatchObject({ ready: '-', reason: 'Waiting', isReady: false });
  });

  test('what is being deleted is not ready, and tells what holds it up', () => {
    const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z' };
    expect(rowOf(helloApp(ready, deleted), [])).toMatchObject({ reason: 'Deleting', isReady: false });
    const stuck = { ...ready, status: 'False', message: 'cannot delete' };
    expect(rowOf(helloApp(stuck, deleted), [])).toMatchObject({ reason: 'Deleting', message: 'cannot delete' });
  });

  test('an object of the cluster has no namespace', () => {
    expect(rowOf(helloApp(undefined, { namespace: undefined }), []).object).toBe('web');
  });
});

describe('children', () => {
  const deployment = (replicas: number, readyReplicas?: number) =>
    child('Deployment', { spec: { replicas }, status: { readyReplicas } });

  test.each([
    [[], 'none'],
    [[child('Service')], 'Service'],
    [[child('Service'), child('ConfigMap'), child('Service')], 'Service x2, ConfigMap'],
    [[deployment(3)], 'Deployment 0/3'],
    [[deployment(3, 2)], 'Deployment 2/3'],
    [[deployment(3, 2), deployment(1, 1)], 'Deployment x2 3/4'],
    [[deployment(0)], 'Deployment 0/0'],
  ])('%#', (children, text) => expect(rowOf(helloApp(), children).children).toBe(text));
});

test('the reason of an object in one line', () => {
  expect(reasonLine(notYet)).toBe(
    'HelloApp team/web: Ready=False (Progressing): Deployment "web": 0 of 1 replicas ready',
  );
});
