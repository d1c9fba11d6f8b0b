import { owned } from '../../../constructs/kube/resource-type';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { HelloApp } from '../../../constructs/kinds';
import { apiError, formatRequest } from '../../../testing/api-server/requests';
import { Harness, ref, rolledOut } from './harness';

const { Deployment } = owned;

interface PodSpec {
  hostNetwork?: boolean;
  containers: { name: string; image: string; args?: string[] }[];
}

function podSpec(object: KubeObject): PodSpec {
  return (object.spec as { template: { spec: PodSpec } }).template.spec;
}

/** An admission webhook that lets pods come from a mirror. */
function mirror(object: KubeObject): void {
  if (object.kind !== 'Deployment') return;
  for (const container of podSpec(object).containers) {
    if (!container.image.startsWith('mirror/')) container.image = `mirror/${container.image}`;
  }
}

describe('a child that the server stores otherwise than it was applied', () => {
  let harness: Harness;

  function setImage(image: string): void {
    harness.server.edit(Deployment, ref('web'), (live) => {
      for (const container of podSpec(live).containers) container.image = image;
      return live;
    });
  }

  async function deploymentWrites(): Promise<readonly string[]> {
    const { writes } = await harness.reconcile('web');
    return writes.filter((write) => write.includes('Deployment'));
  }

  beforeEach(async () => {
    harness = new Harness(HelloApp);
    harness.server.admit = mirror;
    await harness.add('web', { image: 'nginx:1', size: 2 });
    await harness.reconcile('web');
    harness.server.setStatus(Deployment, ref('web'), rolledOut(2));
  });

  it('is not written again, and called contested by nobody', async () => {
    for (let i = 0; i < 8; i++) expect(await deploymentWrites()).toEqual([]);
    expect(harness.conditions('web')).toEqual(['Ready=True Ready']);
  });

  it('is not written after a restart either: one dry run shows how the server stores it', async () => {
    harness.context.projection.forget(harness.live(Deployment, 'web').metadata.annotations?.['kindred.dev/hash']);
    expect(await deploymentWrites()).toEqual([]);
    expect(harness.server.takeRequests().map(formatRequest)).toContain('APPLY Deployment web (dry run, kindred)');
    expect(await deploymentWrites()).toEqual([]);
    expect(harness.server.takeRequests()).toEqual([]);
    setImage('other/nginx:1');
    expect(await deploymentWrites()).toContain('APPLY Deployment web (kindred)');
  });

  it('is put right when somebody changes what was stored', async () => {
    harness.server.admit = () => undefined;
    setImage('other/nginx:1');
    expect(await deploymentWrites()).toContain('APPLY Deployment web (kindred)');
    expect(podSpec(harness.live(Deployment, 'web')).containers[0]?.image).toBe('nginx:1');
    expect(await deploymentWrites()).toEqual([]);
  });

  it('may also stand as it was rendered', async () => {
    harness.server.admit = () => undefined;
    setImage('nginx:1');
    expect(await deploymentWrites()).toEqual([]);
  });

  it('is written when something else of it drifts', async () => {
    harness.server.edit(Deployment, ref('web'), (live) => ({
      ...live,
      spec: { ...(live.spec as object), replicas: 7 },
    }));
    expect(await deploymentWrites()).toContain('APPLY Deployment web (kindred)');
    expect(harness.live(Deployment, 'web')).toMatchObject({ spec: { replicas: 2 } });
    expect(await deploymentWrites()).toEqual([]);
  });

  it('follows its spec, and is then known anew', async () => {
    harness.respec('web', { image: 'nginx:2' });
    expect(await deploymentWrites()).toContain('APPLY Deployment web (kindred)');
    expect(podSpec(harness.live(Deployment, 'web')).containers[0]?.image).toBe('mirror/nginx:2');
    expect(await deploymentWrites()).toEqual([]);
  });
});

describe('corrections that the server refuses', () => {
  it('are no contest: the refusal is told, nobody else is blamed', async () => {
    const harness = new Harness(HelloApp);
    await harness.add('web', { image: 'nginx:1', size: 2 });
    await harness.reconcile('web');
    harness.server.edit(Deployment, ref('web'), (live) => ({
      ...live,
      spec: { ...(live.spec as object), replicas: 7 },
    }));

    harness.server.before = ({ verb, type }) => {
      if (verb === 'APPLY' && type.kind === 'Deployment') throw apiError(500, 'InternalError', 'the webhook is away');
    };
    for (let i = 0; i < 8; i++) await harness.reconcile('web');
    expect(harness.conditions('web')[0]).toBe('Ready=False ErrServer');
    expect(harness.message('web')).toBe('Deployment "web": the webhook is away');
  });
});

describe('what is remembered of how children look', () => {
  it('does not grow with what the server refuses', async () => {
    const harness = new Harness(HelloApp);
    const { projection } = harness.context;
    harness.server.before = ({ verb, type }) => {
      if (verb !== 'GET' && type.kind === 'Deployment') throw apiError(422, 'Invalid', 'no');
    };
    await harness.add('web', { image: 'nginx:0' });
    await harness.reconcile('web');
    expect(projection.size).toBe(0);
    harness.server.before = () => undefined;
    await harness.reconcile('web');
    expect(projection.size).toBe(1);
    harness.server.before = ({ verb, type }) => {
      if (['APPLY', 'PATCH'].includes(verb) && type.kind === 'Deployment') throw apiError(422, 'Invalid', 'no');
    };
    for (let i = 1; i < 5; i++) {
      harness.respec('web', { image: `nginx:${String(i)}` });
      await harness.reconcile('web');
    }
    expect(projection.size).toBe(1);
    harness.server.before = () => undefined;
    expect((await harness.reconcile('web')).writes).toContain('APPLY Deployment web (kindred)');
    expect(projection.size).toBe(1);
  });

  it('does not grow with changes of which only the first of two writes arrives', async () => {
    const harness = new Harness(HelloApp);
    const { projection } = harness.context;
    await harness.add('web', { image: 'nginx:0' });
    await harness.reconcile('web');
    let merged = false;
    harness.server.before = ({ verb, type, options }) => {
      if (type.kind !== 'Deployment') return;
      if (verb === 'APPLY' && merged) throw apiError(409, 'Conflict', 'somebody was faster');
      if (verb === 'APPLY') throw apiError(422, 'Invalid', 'spec.ports[1].name: Duplicate value: "http"');
      merged ||= verb === 'PATCH' && options?.type === 'merge';
    };
    for (let i = 1; i < 5; i++) {
      merged = false;
      harness.respec('web', { image: `nginx:${String(i)}` });
      // The cache learns of the first from its answer.
      harness.server.eventDelivery = 'after';
      await expect(harness.reconcile('web')).rejects.toMatchObject({ code: 409 });
      expect(merged).toBe(true);
      harness.server.eventDelivery = 'before';
      harness.server.deliverEvents();
    }
    expect(projection.size).toBe(1);
  });
});
