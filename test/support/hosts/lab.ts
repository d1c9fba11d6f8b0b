import { startGuarded, type Guarded } from './guarded';
import { must, run } from './run';

/** The networks of one group of hosts: `10.203.<number>.0/25` in reach of this process, `10.203.<number>.128/25` behind it. */
export interface Lab {
  readonly number: number;
  /** The address of this process' side. */
  readonly gateway: string;
  /** Gives a host an interface. @param pid - the host's first process */
  connect(pid: number, link: Link): Promise<void>;
  /** Ends the networks and everything that hangs on them. */
  end(): Promise<void>;
  /** Runs a shell script in the namespace of the bridges. */
  exec(script: string): Promise<string>;
}

/** One interface of a host. */
export interface Link {
  /** Its name in the host. */
  readonly name: string;
  /** Its name at the bridge; unique in the lab. */
  readonly port: string;
  readonly network: 'outer' | 'inner';
  readonly address: string;
}

const greet = `set -e
read -r pid _ </proc/self/stat
ip link set lo up
for bridge in outer inner; do ip link add "$bridge" type bridge forward_delay 0; ip link set "$bridge" up; done
echo "$pid"
exec >/dev/null 2>&1
read -r _ <&3 || true`;

/** How many groups of hosts a machine can have at once. */
const labs = 250;

/** Makes the networks. They end with this process, however it ends. */
export async function startLab(): Promise<Lab> {
  const guarded = await startGuarded(['--net', '--mount'], ['bash', '-c', greet]);
  try {
    const number = await claimNumber(guarded);
    return new NamespacedLab(guarded, number);
  } catch (error) {
    await guarded.end();
    throw error;
  }
}

/**
 * Takes a range of addresses. The name of the interface on our side is the lock: only one process gets to make it, and the kernel removes
 * it together with the other end, which lies in the lab.
 */
async function claimNumber({ pid }: Guarded): Promise<number> {
  for (let tried = 0; tried < labs; tried++) {
    const number = ((process.pid + tried) % labs) + 1;
    const link = `kindred${number}`;
    const made = await run('ip', ['link', 'add', link, 'type', 'veth', 'peer', 'name', 'uplink', 'netns', String(pid)]);
    if (made.exitCode !== 0 && made.stderr.includes('File exists')) continue;
    await must(Promise.resolve(made));
    await must(run('ip', ['address', 'add', `10.203.${number}.1/25`, 'dev', link]));
    await must(run('ip', ['link', 'set', link, 'up']));
    await must(run('nsenter', [`--net=/proc/${pid}/ns/net`, 'ip', 'link', 'set', 'uplink', 'master', 'outer', 'up']));
    return number;
  }
  throw new Error(`all ${labs} ranges of addresses for test hosts are taken`);
}

class NamespacedLab implements Lab {
  constructor(
    private readonly guarded: Guarded,
    readonly number: number,
  ) {}

  get gateway(): string {
    return `10.203.${this.number}.1`;
  }

  async connect(pid: number, { name, port, network, address }: Link): Promise<void> {
    await this.exec(`ip link add ${port} type veth peer name ${name} netns ${pid}
ip link set ${port} master ${network} up
exec nsenter --net=/proc/${pid}/ns/net sh -ec 'ip address add ${address}/25 dev ${name}; ip link set ${name} up'`);
  }

  async exec(script: string): Promise<string> {
    return must(run('nsenter', [`--net=/proc/${this.guarded.pid}/ns/net`, 'sh', '-ec', script]));
  }

  async end(): Promise<void> {
    await this.guarded.end();
  }
}
