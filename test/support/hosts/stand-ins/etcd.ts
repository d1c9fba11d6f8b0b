import { createWriteStream } from 'node:fs';
import { request } from 'node:http';
import { createInterface } from 'node:readline';
import { sendRequest } from './requests';

/** The etcd of this machine. */
export const CLIENT_URL = 'http://127.0.0.1:2379';

/** A member as etcd's gateway tells it. */
export interface Member {
  readonly ID: string;
  /** Absent until it has started. */
  readonly name?: string;
  readonly peerURLs: readonly string[];
  readonly isLearner?: boolean;
}

/** Where members reach each other. */
export const peerUrl = (address: string): string => `http://${address}:2380`;

/** The flags of the etcd of a machine. @param cluster - `name=url,...`; ignored once it has data */
export function etcdFlags(
  name: string,
  address: string,
  dataFolder: string,
  cluster: string,
  joining: boolean,
): string[] {
  return [
    `--name=${name}`,
    `--data-dir=${dataFolder}`,
    `--listen-client-urls=http://0.0.0.0:2379`,
    `--advertise-client-urls=http://${address}:2379`,
    '--listen-peer-urls=http://0.0.0.0:2380',
    `--initial-advertise-peer-urls=${peerUrl(address)}`,
    `--initial-cluster=${cluster}`,
    `--initial-cluster-state=${joining ? 'existing' : 'new'}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
  ];
}

export async function members(): Promise<readonly Member[]> {
  return ((await call('member/list', {})) as { members: readonly Member[] }).members;
}

/** Makes room for a member, which does not count until it is promoted. @returns what it starts with */
export async function addMember(name: string, address: string): Promise<string> {
  const url = peerUrl(address);
  const before = await members();
  if (!before.some(({ peerURLs }) => peerURLs.includes(url))) {
    await call('member/add', { peerURLs: [url], isLearner: true });
  }
  const known = before.filter(({ peerURLs }) => !peerURLs.includes(url));
  return [...known.map((member) => `${member.name ?? ''}=${member.peerURLs[0] ?? ''}`), `${name}=${url}`].join(',');
}

/** Makes a member count. @returns false while it has not caught up */
export async function promoteMember(address: string): Promise<boolean> {
  const member = (await members()).find(({ peerURLs }) => peerURLs.includes(peerUrl(address)));
  if (member === undefined) return false;
  if (member.isLearner !== true) return true;
  const { status } = await sendRequest('POST', `${CLIENT_URL}/v3/cluster/member/promote`, { body: { ID: member.ID } });
  return status === 200;
}

export async function removeMember(name: string): Promise<void> {
  const member = (await members()).find((each) => each.name === name);
  if (member !== undefined) await call('member/remove', { ID: member.ID });
}

async function call(method: string, body: unknown): Promise<unknown> {
  const { status, text } = await sendRequest('POST', `${CLIENT_URL}/v3/cluster/${method}`, { body });
  if (status === 200) return JSON.parse(text) as unknown;
  throw new Error(`etcd refused ${method} with ${status}: ${text}`);
}

/** Writes a snapshot of the data into a file. */
export async function saveSnapshot(file: string): Promise<void> {
  const output = createWriteStream(file, { mode: 0o600 });
  await new Promise<void>((resolve, reject) => {
    const asked = request(`${CLIENT_URL}/v3/maintenance/snapshot`, { method: 'POST' }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`etcd refused a snapshot with ${String(response.statusCode)}`));
      // A line of JSON for each piece.
      const lines = createInterface({ input: response });
      lines.on('line', (line) => {
        const { result } = JSON.parse(line) as { result?: { blob?: string } };
        output.write(Buffer.from(result?.blob ?? '', 'base64'));
      });
      lines.once('close', () => output.end(resolve));
      output.once('error', reject);
    });
    asked.once('error', reject);
    asked.end('{}');
  });
}
