import { requireSuccess, run, type NamespaceProcess, type HostNetwork, type Link } from './host-network';
import { keyRefOf, newSshKeys, type TestHost } from './ssh-host';

/** What a host is made of. */
interface HostParts {
  readonly name: string;
  readonly guarded: NamespaceProcess;
  readonly lab: HostNetwork;
  readonly links: readonly Link[];
  /** Further lines of `sshd_config`; they come first and win. */
  readonly sshdConfig: readonly string[];
}

const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** A host in namespaces of its own. */
export class NamespacedHost implements TestHost {
  readonly port = 22;
  readonly #parts: HostParts;
  readonly #keys = newSshKeys();
  #hostKeys = newSshKeys();

  private constructor(parts: HostParts) {
    this.#parts = parts;
  }

  /** Sets up a machine whose first process runs: network, users, keys, SSH server. */
  static async setUp(parts: HostParts): Promise<NamespacedHost> {
    const host = new NamespacedHost(parts);
    for (const link of parts.links) await parts.lab.connect(parts.guarded.pid, link);
    const { name, address } = host;
    const authorizedKey = host.#keys.publicKey;
    const hostPrivateKey = host.#hostKeys.privateKey;
    await host.exec(setupScript({ name, address, authorizedKey, hostPrivateKey, sshdConfig: parts.sshdConfig }));
    return host;
  }

  get name(): string {
    return this.#parts.name;
  }

  get pid(): number {
    return this.#parts.guarded.pid;
  }

  get address(): string {
    return this.#link.address;
  }

  get hostKey(): string {
    return this.#hostKeys.publicKey;
  }

  get privateKey(): string {
    return this.#keys.privateKey;
  }

  machine(user = 'root'): ReturnType<TestHost['machine']> {
    const { address, port, hostKey } = this;
    return { address, port, user, hostKey, sshKey: keyRefOf(this) };
  }

  async exec(script: string, input = ''): Promise<string> {
    const inside = ['-t', String(this.pid), '-m', '-u', '-i', '-n', '-p', '-r', '-w', '--'];
    const environment = ['env', '-i', `PATH=${path}`, 'HOME=/root', 'USER=root', 'LOGNAME=root'];
    return requireSuccess(run('nsenter', [...inside, ...environment, 'sh', '-ec', script], input));
  }

  async stopSshd(): Promise<void> {
    // The process that listens; the sessions are processes of their own and go on.
    await this.exec('kill "$(cat /run/sshd.pid)"; while [ -e /run/sshd.pid ]; do sleep 0.02; done');
  }

  async startSshd(): Promise<void> {
    await this.exec(sshdCommand);
  }

  async dropConnections(): Promise<void> {
    await this.exec(`listening=$(cat /run/sshd.pid 2>/dev/null) || listening=
for pid in $(pidof sshd || true); do [ "$pid" = "$listening" ] || kill -9 "$pid" || true; done`);
  }

  async changeHostKey(): Promise<void> {
    const next = newSshKeys();
    await this.stopSshd();
    await this.exec('cat >/etc/ssh/host_key', next.privateKey);
    this.#hostKeys = next;
    await this.startSshd();
  }

  async refuseKey(): Promise<void> {
    await this.exec('mv /etc/ssh/keys/authorized /etc/ssh/keys/refused');
  }

  async acceptKey(): Promise<void> {
    await this.exec('mv /etc/ssh/keys/refused /etc/ssh/keys/authorized');
  }

  async cutNetwork(): Promise<void> {
    await this.#atPorts((port) => `ip link set ${port} down`);
  }

  async restoreNetwork(): Promise<void> {
    await this.#atPorts((port) => `ip link set ${port} up; tc qdisc del dev ${port} root 2>/dev/null || true`);
  }

  async slowNetwork(kilobits: number): Promise<void> {
    await this.#atPorts((port) => `tc qdisc replace dev ${port} root tbf rate ${kilobits}kbit burst 2kb latency 2s`);
  }

  async fillDisk(): Promise<void> {
    // dd fails when the disk is full, which is what is wanted; the second run takes what is left of the last block.
    await this.exec('for size in 1M 1; do dd if=/dev/zero bs=$size of=/var/fill-$size 2>/dev/null || true; done');
  }

  async freeDisk(): Promise<void> {
    await this.exec('rm -f /var/fill-*');
  }

  async end(): Promise<void> {
    await this.#parts.guarded.end();
  }

  get #link(): Link {
    const [link] = this.#parts.links;
    if (link === undefined) throw new Error('a host without a link');
    return link;
  }

  async #atPorts(command: (port: string) => string): Promise<void> {
    await this.#parts.lab.exec(this.#parts.links.map(({ port }) => command(port)).join('\n'));
  }
}

/** What a new host is told. */
interface HostSetup {
  readonly name: string;
  readonly address: string;
  /** Public key, `type base64`. */
  readonly authorizedKey: string;
  readonly hostPrivateKey: string;
  readonly sshdConfig: readonly string[];
}

/**
 * Starts the SSH server, and waits until it listens: it puts itself in the background before that, and writes
 * its pid file after it. It tells only its log why it does not.
 */
const sshdCommand = `"$(command -v sshd)" -f /etc/ssh/sshd_config -E /var/log/sshd.log || { cat /var/log/sshd.log >&2; exit 1; }
left=1500
until [ -e /run/sshd.pid ]; do
  [ "$left" -gt 0 ] || { echo 'sshd does not listen:' >&2; cat /var/log/sshd.log >&2; exit 1; }
  left=$((left - 1))
  sleep 0.02
done`;

/**
 * Gives a new machine its users (`root`, `admin` who may use sudo without a password, `guest` who may not), keys and SSH server.
 */
function setupScript(setup: HostSetup): string {
  const config = [
    ...setup.sshdConfig,
    'Port 22',
    'HostKey /etc/ssh/host_key',
    'AuthorizedKeysFile /etc/ssh/keys/authorized',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
    'UsePAM no',
    'UseDNS no',
    'MaxStartups 100',
    'MaxSessions 100',
    'PidFile /run/sshd.pid',
    'LogLevel VERBOSE',
  ];
  return `
umask 022
echo '${setup.name}' >/etc/hostname
printf '127.0.0.1 localhost\\n${setup.address} ${setup.name}\\n' >/etc/hosts
grep -q '^sshd:' /etc/passwd || echo 'sshd:x:901:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
id=2001
for user in admin guest; do
  echo "$user:x:$id:$id::/home/$user:/bin/bash" >>/etc/passwd
  echo "$user:x:$id:" >>/etc/group
  echo "$user:*:20000:0:99999:7:::" >>/etc/shadow
  mkdir -m 700 "/home/$user"
  chown "$id:$id" "/home/$user"
  id=$((id + 1))
done
echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin
chmod 440 /etc/sudoers.d/admin
rm -f /etc/ssh/ssh_host_* /etc/ssh/sshd_config.d/*
mkdir -p /etc/ssh/keys
echo '${setup.authorizedKey}' >/etc/ssh/keys/authorized
cat >/etc/ssh/host_key <<'END'
${setup.hostPrivateKey.trimEnd()}
END
chmod 600 /etc/ssh/host_key
cat >/etc/ssh/sshd_config <<'END'
${config.join('\n')}
END
${sshdCommand}
`;
}
