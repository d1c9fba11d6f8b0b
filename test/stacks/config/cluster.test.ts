import { SSH_KEY, cluster, config, problems } from './parsed';

describe('what is wrong with a cluster', () => {
  const first = cluster.nodes[0];
  test.each([
    [{ ...cluster, name: undefined }, /^cluster\.name: is required$/],
    [{ ...cluster, nodes: 'a' }, /^cluster\.nodes: it must be a list/],
    [{ ...cluster, configPath: 'x' }, /^cluster\.configPath: is no field of it/],
    [{ ...cluster, version: 'v1.30' }, /^cluster\.version: must look like/],
    [{ ...cluster, distribution: 'rke2' }, /^cluster: a version of rke2 has/],
    [{ ...cluster, distribution: 'k3s(' }, /^cluster\.distribution: it must be rke, rke2 or k3s$/],
    [{ ...cluster, options: 'x' }, /^cluster\.options: it must be an object$/],
    [
      { ...cluster, nodes: [{ ...first, bastion: 'jump.example.com' }] },
      /^cluster\.nodes\[0\]\.bastion: it must be an object/,
    ],
    [{ ...cluster, nodes: [{ ...first, roles: ['boss'] }] }, /^cluster\.nodes\[0\]\.roles\[0\]: /],
    [{ ...cluster, options: { flannel: 'x' } }, /^cluster\.options\.flannel: is no field/],
    [
      { ...cluster, nodes: [{ address: 'a', user: 'root', roles: ['controlplane', 'etcd'] }] },
      /^cluster\.nodes\[0\]\.hostKey: /,
    ],
  ])('%#', (wrong, problem) => {
    expect(problems({ cluster: wrong, sshKey: SSH_KEY }, ['sshKey'])).toEqual([expect.stringMatching(problem)]);
  });

  test.each([
    ['removable as a text', { removable: '10.0.0.1' }, /^cluster\.removable: it must be a list of names or addresses/],
    ['lost as a text', { lost: '10.0.0.1' }, /^cluster\.lost: it must be a list of names or addresses/],
    ['lost with a number', { lost: [7] }, /^cluster\.lost\[0\]: it must be the name or the address of a node$/],
    ['lost of another cluster', { lost: ['10.0.0.9'] }, /^cluster\.lost\[0\]: "10\.0\.0\.9" is none of the nodes/],
    ['removable and gone', { removable: ['10.0.0.1', 'b'] }, /^cluster\.removable\[1\]: "b" is none of the nodes/],
    [
      'attempts as a text',
      { dialAttempts: 'many' },
      /^cluster\.dialAttempts: it must be a whole number of at least 1$/,
    ],
    ['no attempts', { dialAttempts: 0 }, /^cluster\.dialAttempts: it must be a whole number of at least 1$/],
    [
      'a bad name of a node',
      { nodes: [{ ...first, name: 'Bad Name' }] },
      /^cluster\.nodes\[0\]\.name: "Bad Name" must/,
    ],
    ['a number as a name', { nodes: [{ ...first, name: 5 }] }, /^cluster\.nodes\[0\]\.name: it must be a text$/],
    ['a node that is none', { nodes: [first, 'x'] }, /^cluster\.nodes\[1\]: it must be an object with address/],
    ['a name that is none', { name: 5 }, /^cluster\.name: it must be a text$/],
    ['an empty host key', { nodes: [{ ...first, hostKey: null }] }, /^cluster\.nodes\[0\]\.hostKey: is required: /],
  ])('of what only the component knows: %s', (_, wrong, problem) => {
    expect(problems({ cluster: { ...cluster, ...wrong }, sshKey: SSH_KEY }, ['sshKey'])).toEqual([
      expect.stringMatching(problem),
    ]);
  });

  test('of the host keys, the component and the spec, all at once', () => {
    const nodes = [{ ...first, hostKey: undefined, name: 'Bad Name' }];
    const wrong = { ...cluster, nodes, lost: ['10.0.0.9'], options: { flannel: 'x' } };
    expect(problems({ cluster: wrong, sshKey: SSH_KEY }, ['sshKey'])).toEqual([
      expect.stringMatching(/^cluster\.nodes\[0\]\.hostKey: /),
      expect.stringMatching(/^cluster\.nodes\[0\]\.name: /),
      expect.stringMatching(/^cluster\.lost\[0\]: /),
      expect.stringMatching(/^cluster\.options\.flannel: /),
    ]);
  });

  test('of fields that say nothing: they count as left out', () => {
    const empty = { installer: null, options: null, removable: null, lost: null, dialAttempts: null };
    expect(config({ cluster: { ...cluster, ...empty }, sshKey: SSH_KEY }, ['sshKey']).cluster).toEqual(cluster);
  });

  test('a passphrase is not for RKE', () => {
    const rke = { ...cluster, distribution: 'rke', version: 'v1.24.8-rancher1-1' };
    const secrets = { sshKey: SSH_KEY, sshKeyPassphrase: 'CANARY' };
    expect(problems({ cluster: rke, ...secrets }, Object.keys(secrets))).toEqual([
      'sshKeyPassphrase: cannot be used with rke, which reads the key itself: give a key without a passphrase',
    ]);
  });

  test("a bastion's key is refused in it, since it is no secret there", () => {
    const bastion = { address: '192.0.2.1', user: 'jump', hostKey: first?.hostKey, sshKey: 'CANARY' };
    const values = { cluster: { ...cluster, nodes: [{ ...first, bastion }] }, sshKey: SSH_KEY };
    expect(problems(values, ['sshKey'])).toEqual([
      'cluster.nodes[0].bastion.sshKey: is no place for a key: name a Secret in sshKeySecretRef, and give its value in clusterSecrets',
    ]);
    expect(() => config(values, ['sshKey'])).toThrow(
      "try: pulumi config rm --path 'kindred:cluster.nodes[0].bastion.sshKey'",
    );
  });

  describe('of the secrets that its options refer to', () => {
    const credentialsSecretRef = { namespace: 'a', name: 'b' };
    const withRegistry = {
      ...cluster,
      options: { registries: [{ host: 'r.example.com', credentialsSecretRef }] },
    };
    const values = (clusterSecrets: object) => ({ cluster: withRegistry, sshKey: SSH_KEY, clusterSecrets });
    const keys = ['sshKey', 'clusterSecrets'];

    test('a missing one is named by its key, with the command that sets it', () => {
      expect(problems(values({ 'a/b': { password: 'CANARY' } }), keys)).toEqual([
        'clusterSecrets["a/b"].username: is missing, and the options refer to it',
      ]);
      expect(() => config(values({}), keys)).toThrow(
        `try: pulumi config set --secret --path 'kindred:clusterSecrets["a/b"].username' < FILE`,
      );
    });

    test('with all of them it is well', () => {
      expect(problems(values({ 'a/b': { username: 'u', password: 'CANARY' } }), keys)).toEqual([]);
    });

    test('the key of a bastion is one of them', () => {
      const sshKeySecretRef = { namespace: 'infra', name: 'jump' };
      const bastion = { address: '192.0.2.1', user: 'jump', hostKey: first?.hostKey, sshKeySecretRef };
      const behind = { ...cluster, nodes: [{ ...first, bastion }] };
      const of = (clusterSecrets: object) => problems({ cluster: behind, sshKey: SSH_KEY, clusterSecrets }, keys);
      expect(of({})).toEqual([
        'clusterSecrets["infra/jump"].ssh-privatekey: is missing, and the bastion of "10.0.0.1" is reached with it',
      ]);
      expect(of({ 'infra/jump': { 'ssh-privatekey': 'CANARY' } })).toEqual([]);
    });

    test('a key with a dot is written as Pulumi reads it', () => {
      const caSecretRef = { namespace: 'a', name: 'ca', key: 'tls.crt' };
      const options = { registries: [{ host: 'r.example.com', caSecretRef }] };
      expect(() => config({ cluster: { ...cluster, options }, sshKey: SSH_KEY }, keys)).toThrow(
        `try: pulumi config set --secret --path 'kindred:clusterSecrets["a/ca"]["tls.crt"]' < FILE`,
      );
    });

    test('those that are wrong by themselves are not missing as well', () => {
      expect(problems(values({ 'a/b': { username: 'u', password: 'p' } }), ['sshKey'])).toEqual([
        expect.stringMatching(/^clusterSecrets: it stands in plain text/),
      ]);
      expect(problems(values({ 'a/b': 'CANARY' }), keys)).toEqual([
        'clusterSecrets["a/b"]: it must be an object of texts',
      ]);
    });
  });

  describe('of the installer, which runs as root', () => {
    const wrongs = (installer: unknown, more: object = {}): readonly string[] =>
      problems({ cluster: { ...cluster, ...more, installer }, sshKey: SSH_KEY }, ['sshKey']);

    test.each([
      ['a text', 'https://mirror.example.com/k3s.sh', /^cluster\.installer: it must be an object with url or path/],
      ['a list', [], /^cluster\.installer: it must be an object/],
      ['a wrong URL', { url: 'x; rm -rf /' }, /^cluster\.installer\.url: must be a URL/],
      ['a number', { sha256: 5 }, /^cluster\.installer\.sha256: /],
      ['a short sum', { sha256: 'abc' }, /^cluster\.installer\.sha256: must be a SHA-256/],
      ['two sources', { url: 'https://x/y', path: '/y' }, /^cluster\.installer: has url and path; give one of them$/],
    ])('%s', (_, installer, problem) => {
      expect(wrongs(installer)).toEqual([expect.stringMatching(problem)]);
    });

    test('misspelled fields are refused rather than left out, and the command takes them away', () => {
      const installer = { sha256sum: 'a'.repeat(64), urll: 'https://mirror.example.com/k3s.sh' };
      expect(wrongs(installer)).toEqual([
        'cluster.installer.sha256sum: is no field of it; it has url, path, sha256, artifacts',
        'cluster.installer.urll: is no field of it; it has url, path, sha256, artifacts',
      ]);
      expect(() => config({ cluster: { ...cluster, installer }, sshKey: SSH_KEY }, ['sshKey'])).toThrow(
        "try: pulumi config rm --path 'kindred:cluster.installer.sha256sum'",
      );
    });

    test('RKE has none', () => {
      expect(wrongs({ path: '/x' }, { distribution: 'rke', version: 'v1.24.8-rancher1-1' })).toEqual([
        expect.stringMatching(/^cluster\.installer: is for RKE2 and K3s; /),
      ]);
    });

    test('a right one reaches the cluster', () => {
      const installer = { url: 'https://mirror.example.com/k3s.sh', sha256: 'a'.repeat(64), artifacts: '/opt/k3s' };
      const read = config({ cluster: { ...cluster, installer }, sshKey: SSH_KEY }, ['sshKey']);
      expect(read.cluster?.installer).toEqual(installer);
    });
  });
});
