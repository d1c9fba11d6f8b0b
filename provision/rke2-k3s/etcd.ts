/** What scripts ask of embedded etcd itself: its members, and whether it is healthy. */

import type { Node } from '../cluster/cluster-input';
import { shellCommand, shellQuote } from '../shell/script';
import { distributionInfo, type Rke2K3sInput } from './distribution';
import { internalAddress, urlHost } from './layout';

/** Directory of etcd's data, quoted. Besides the data it has the file `name`, with the name of the member. */
export const etcdDataDir = (input: Rke2K3sInput): string =>
  shellQuote(`${distributionInfo(input).dataFolder}/server/db/etcd`);

/** The hosts at which the members of etcd among these nodes answer; IPv6 addresses in brackets. */
export const etcdHosts = (nodes: readonly Node[]): readonly string[] =>
  nodes.filter(({ roles }) => roles.includes('etcd')).map((node) => urlHost(internalAddress(node)));

/**
 * Whether etcd on this machine is healthy, which takes a leader: a command for a condition.
 *
 * Releases of RKE2 and K3s since October 2023 answer HTTP on the port for metrics alone; there, port 2379 is
 * for gRPC. Source: https://github.com/k3s-io/k3s/pull/8402
 */
export function etcdIsHealthy(input: Rke2K3sInput): string {
  const tls = `${distributionInfo(input).dataFolder}/server/tls/etcd`;
  const ask = (...words: readonly string[]): string =>
    `${shellCommand('curl', '-sf', '--noproxy', '*', '--max-time', '5', ...words)} </dev/null 2>>"$log" 3>&-`;
  const certificates = [
    ...['--cacert', `${tls}/server-ca.crt`, '--cert', `${tls}/server-client.crt`],
    ...['--key', `${tls}/server-client.key`],
  ];
  return `{ ${ask('http://127.0.0.1:2381/health')} || ${ask(...certificates, 'https://127.0.0.1:2379/health')}; } |
    grep -q '"health" *: *"true"'`;
}

/**
 * Functions that ask etcd for its members, from a server, with the client certificate that each server of
 * RKE2 and K3s has. Port 2379 takes gRPC alone, which curl sends as HTTP/2; neither distribution installs
 * `etcdctl`.
 *
 * - `ask_etcd HOST...` asks the hosts one after another. On the first answer, to which a majority of the
 *   members agreed, it sets `etcd_host`, and `member` to the member of `node`, or to nothing. Fails when none
 *   answers: then nothing is known.
 * - `leave_etcd HOST...` also removes that member. Fails while etcd refuses, which it does when without the
 *   member too few of the others would be healthy.
 *
 * @param node - whose member is meant: the one with its peer address or, on its own machine, with the name in
 *   etcd's directory
 */
export function etcdMemberFunctions(input: Rke2K3sInput, node: Node): string {
  const tls = `${distributionInfo(input).dataFolder}/server/tls/etcd`;
  const certificates = shellCommand(
    ...['--cacert', `${tls}/server-ca.crt`, '--cert', `${tls}/client.crt`, '--key', `${tls}/client.key`],
  );
  return `peer_url=${shellQuote(`https://${urlHost(internalAddress(node))}:2380`)}
# Calls a method of etcd's service Cluster: HOST METHOD MESSAGE, where the message is for printf.
call_etcd() {
  rm -f "$state/etcd-answer" "$state/etcd-status"
  # The message is made of octal numbers alone.
  # shellcheck disable=SC2059
  printf "$3" | curl -sS --http2 --noproxy '*' --connect-timeout 5 --max-time 20 ${certificates} \\
    -H 'content-type: application/grpc' -H 'te: trailers' --data-binary @- \\
    -D "$state/etcd-status" -o "$state/etcd-answer" "https://$1:2379/etcdserverpb.Cluster/$2" >>"$log" 2>&1 3>&- 9>&- || return 1
  tr -d '\\r' <"$state/etcd-status" >>"$log"
  tr -d '\\r' <"$state/etcd-status" | grep -qi '^grpc-status: *0$'
}
# One line for each member: the message that removes it, its name, the URLs of its peers.
list_members() {
  call_etcd "$1" MemberList '${LINEARIZABLE_LIST}' || return 1
  members=$(od -An -v -tu1 "$state/etcd-answer" | awk '${PARSE_MEMBERS}')
}
ask_etcd() {
  for etcd_host; do
    if list_members "$etcd_host"; then
      member=$(printf '%s\\n' "$members" | awk -F '|' -v name="$(cat ${etcdDataDir(input)}/name 2>/dev/null || :)" -v url="$peer_url" '
        (name != "" && $2 == name) || index(" " $3 " ", " " url " ") { print $1; exit }')
      rm -f "$state/etcd-answer" "$state/etcd-status"
      return 0
    fi
  done
  return 1
}
leave_etcd() {
  ask_etcd "$@" || return 1
  if [ -z "$member" ]; then return 0; fi
  changed=true
  call_etcd "$etcd_host" MemberRemove "$member" || return 1
  ask_etcd "$@" && [ -z "$member" ]
}`;
}

/**
 * A `MemberListRequest` as a message of gRPC, for printf. Its field `linearizable` is true: otherwise a member
 * that is cut off answers with what it last knew.
 */
const LINEARIZABLE_LIST = String.raw`\000\000\000\000\002\010\001`;

/**
 * Reads a `MemberListResponse` from numbers, one for each byte: field 2 is a `Member` with `ID` (1), `name` (2)
 * and `peerURLs` (3). An ID has 64 bits, too many for awk, so its bytes are kept as they came. Fails for
 * anything else.
 */
const PARSE_MEMBERS = String.raw`
    function varint(   value, factor) {
      value = 0; factor = 1; raw = ""; size = 0
      while (at < last) {
        raw = raw sprintf("\\%03o", byte[at]); size++
        value += (byte[at] % 128) * factor; factor *= 128
        if (byte[at++] < 128) return value
      }
      failed = 1
      return 0
    }
    function text(length_,   i, out) {
      for (i = 0; i < length_; i++) out = out sprintf("%c", byte[at + i])
      return out
    }
    function member(stop,   key, size_, remove, name, peers) {
      while (at < stop && !failed) {
        key = varint()
        if (key == 8) { varint(); remove = sprintf("\\000\\000\\000\\000\\%03o\\010", size + 1) raw }
        else if (key % 8 == 0) varint()
        else if (key % 8 == 2) {
          size_ = varint()
          if (key == 18) name = text(size_)
          if (key == 26) peers = peers (peers == "" ? "" : " ") text(size_)
          at += size_
        } else failed = 1
      }
      printf "%s|%s|%s\n", remove, name, peers
      count++
    }
    { for (i = 1; i <= NF; i++) byte[n++] = $i }
    END {
      last = 5 + byte[1] * 16777216 + byte[2] * 65536 + byte[3] * 256 + byte[4]
      if (n < 5 || byte[0] != 0 || last != n) exit 1
      at = 5
      while (at < last && !failed) {
        key = varint()
        if (key % 8 == 0) varint()
        else if (key % 8 == 2) { end = varint() + at; if (key == 18) member(end); at = end }
        else failed = 1
      }
      exit (failed || at != last || count == 0)
    }`;
