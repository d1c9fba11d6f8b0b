/** An IPv4 or IPv6 address. */
export interface Ip {
  readonly bits: bigint;
  readonly length: 32 | 128;
}

/** An address, or undefined for an invalid text. Source: RFC 4291, 2.2. */
export function parseIp(text: string): Ip | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text);
}

function parseIpv4(text: string): Ip | undefined {
  const octets = text.split('.').map((part) => (/^(0|[1-9][0-9]{0,2})$/.test(part) ? Number(part) : 256));
  if (octets.length !== 4 || octets.some((octet) => octet > 255)) return undefined;
  return { bits: octets.reduce((bits, octet) => (bits << 8n) | BigInt(octet), 0n), length: 32 };
}

function parseIpv6(text: string): Ip | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [head = [], tail = []] = halves.map((half) => (half === '' ? [] : half.split(':')));
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...head, ...new Array<string>(missing).fill('0'), ...tail];
  if (groups.some((group) => !/^[0-9a-f]{1,4}$/i.test(group))) return undefined;
  return { bits: groups.reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n), length: 128 };
}

/** A range of addresses. */
export interface Cidr {
  readonly ip: Ip;
  readonly prefix: number;
}

/** A range such as 10.42.0.0/16, or undefined for an invalid text. */
export function parseCidr(text: string): Cidr | undefined {
  const [address = '', prefix = ''] = text.split('/');
  const ip = parseIp(address);
  if (ip === undefined || !/^[0-9]{1,3}$/.test(prefix) || Number(prefix) > ip.length) return undefined;
  return { ip, prefix: Number(prefix) };
}

/** Whether two ranges have an address in common. */
export function cidrsOverlap(a: Cidr, b: Cidr): boolean {
  if (a.ip.length !== b.ip.length) return false;
  const shift = BigInt(a.ip.length - Math.min(a.prefix, b.prefix));
  return a.ip.bits >> shift === b.ip.bits >> shift;
}

/** Whether an address is in a range. */
export function cidrContains(range: Cidr, ip: Ip): boolean {
  return cidrsOverlap(range, { ip, prefix: ip.length });
}
