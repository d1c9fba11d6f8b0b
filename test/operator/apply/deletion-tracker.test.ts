import type { KubeObject } from '../../../constructs/kube/kube-object';
import { DeletionTracker } from '../../../operator/apply/drift-backoff';

const REMEMBER_MS = 360_000;

function child(uid: string, resourceVersion = '1'): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'old', uid, resourceVersion } };
}

describe('what was deleted of the children of an object', () => {
  let now = 0;
  let prunings: DeletionTracker;

  beforeEach(() => {
    now = 0;
    prunings = new DeletionTracker(() => now, REMEMBER_MS);
    prunings.recordDeletion('owner', 'old', child('u1'));
  });

  it('is on its way out for a minute, as long as it is as it was', () => {
    now = 60_000;
    expect(prunings.priorDeletion('owner', 'old', child('u1'))).toBe('unheard');
    expect(prunings.priorDeletion('owner', 'old', child('u1', '2'))).toBe('no');
    now = 60_001;
    expect(prunings.priorDeletion('owner', 'old', child('u1'))).toBe('no');
  });

  it('has been made again where its name stands with another UID, until that is long ago', () => {
    now = REMEMBER_MS;
    expect(prunings.priorDeletion('owner', 'old', child('u2'))).toBe('again');
    now = REMEMBER_MS + 1;
    expect(prunings.priorDeletion('owner', 'old', child('u2'))).toBe('no');
  });

  it('is forgotten with its time, however many names there were', () => {
    const asked: string[] = [];
    now = REMEMBER_MS + 1;
    prunings.recordDeletion('owner', 'new', child('u3'));
    // Back in time, only what is still remembered counts.
    now = REMEMBER_MS;
    for (const name of ['old', 'new'])
      if (prunings.priorDeletion('owner', name, child('u4')) === 'again') asked.push(name);
    expect(asked).toEqual(['new']);
  });

  it('is no matter any more once the object wants it again, or is gone', () => {
    prunings.recordDeletion('other', 'old', child('u1'));
    prunings.setDesiredChildren('owner', () => ['old']);
    prunings.forget('other');
    for (const owner of ['owner', 'other']) expect(prunings.priorDeletion(owner, 'old', child('u2'))).toBe('no');
  });
});
