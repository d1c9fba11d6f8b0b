import { sshCommand } from '../../task/script-io';
import { shellQuote } from '../../shell/script';

/**
 * Keeps the lock of a cluster on one machine, as the SSH user, while the holder sends a heartbeat every
 * second. The first line of stdin is the new token, the token of a holder that is known to be dead (or `-`),
 * and a record of the holder; the next is the cluster. The script prints `locked`, `held` with the record of
 * the present holder, or `error`.
 *
 * The lock is a file, so it survives a lost connection. It is deleted when the holder releases it, and when
 * the holder's end of the connection is closed, as the kernel does for killed processes, and no holder
 * reconnects within 20 s. It is kept when heartbeats stop without that: the network may be cut while RKE
 * still runs behind it.
 */
const LOCK_HOLDER = String.raw`trap "" HUP PIPE TERM INT
umask 077
read -r token over record
read -r cluster
lock=.kindred/rke/$cluster.lock
holder() { cut -d " " -f 1 "$lock" 2>/dev/null; }
drop() {
  if [ "$(holder)" = "$token" ]; then rm -f "$lock"; fi
  rmdir .kindred/rke .kindred 2>/dev/null
}
mkdir -p .kindred/rke 2>/dev/null
if ! printf "%s %s\n" "$token" "$record" >"$lock.$token" 2>/dev/null; then
  rm -f "$lock.$token" 2>/dev/null
  echo error
  exit 4
fi
# A link is made whole or not at all, and only by one of several; not every file system has links.
ln "$lock.$token" "$lock" 2>/dev/null || (set -C; printf "%s %s\n" "$token" "$record" >"$lock") 2>/dev/null
if [ "$over" != - ] && [ "$(holder)" = "$over" ]; then mv -f "$lock.$token" "$lock"; fi
rm -f "$lock.$token"
if [ "$(holder)" != "$token" ]; then
  echo "held $(cat "$lock" 2>/dev/null)"
  exit 3
fi
echo locked
last=$(date +%s)
while read -r word; do
  if [ "$word" = released ]; then
    drop
    exit 0
  fi
  last=$(date +%s)
done
if [ $(($(date +%s) - last)) -le 15 ]; then
  sleep 20
  drop
fi
exit 5`;

/**
 * `lock_cluster`: takes the lock of the cluster on every control plane machine that responds, in the order of
 * their addresses, and keeps it until both this script and `rke` have ended. Any two runs whose control
 * planes share a machine exclude each other. A machine that accepts the connection and says nothing for a
 * minute counts as one that does not respond. The lock of another holder is waited for up to 45 s, as long as
 * that of a holder that was just killed may remain; a lock that an earlier run in this directory left behind
 * is taken over.
 */
export const CLUSTER_LOCK = String.raw`keeper=${shellQuote(sshCommand(LOCK_HOLDER, { user: 'root', asUser: true }))}
locked=0
unwritten=''
run="$$-$(date +%s)-$(od -An -N6 -tx1 /dev/urandom | tr -d ' \n')"
# Whoever has this folder to itself knows that no other run of it lives.
here="$(cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo "$run")/$(readlink /proc/self/ns/pid || :)/$(stat -c %d:%i "$dir" 2>/dev/null || echo "$run")"
who="$(id -un 2>/dev/null || id -u) on $(uname -n), process $$"
pause() { sleep 0.2 2>/dev/null || sleep 1; }
lives() {
  if [ -e "$dir/done" ]; then return 1; fi
  if at_work "$$"; then return 0; fi
  rke=$(cat "$dir/rke.pid" 2>/dev/null || :)
  [ -n "$rke" ] && at_work "$rke"
}
say() {
  printf '%s %s %s\n%s\n' "$1" "$2" "$here $(date -u +%Y-%m-%dT%H:%M:%SZ) $who" "$cluster" || return 0
  while lives; do
    echo alive || return 0
    sleep 1
  done
  echo released || :
}
# Runs beside everything else, and outlives this script if that is killed while rke is at work.
hold() {
  trap '' TERM INT
  cd "$dir"
  turn=1
  after=0
  over=$2
  out="lock/$run/$1"
  while :; do
    code=0
    say "$run.$turn" "$over" | ssh -F ssh_config "$1" "$keeper" >"$out" || code=$?
    if [ "$turn" = 1 ] && [ ! -s "$out" ]; then
      echo unreachable >"$out"
      return 0
    fi
    case $code in 0 | 3 | 4) return 0 ;; esac
    # The connection was lost: the lock stays ours there, and is told so again.
    if ! lives; then
      after=$((after + 1))
      if [ "$after" -gt 2 ]; then return 0; fi
    fi
    over="$run.$turn"
    turn=$((turn + 1))
    out=/dev/null
    sleep 1
  done
}
lock_on() {
  stale=-
  left=45
  while :; do
    : >"$dir/lock/$run/$1"
    # By exec: where a function is redirected, dash keeps what was open before, and whoever waits for this script to end would wait for all of it.
    (exec </dev/null >>"$dir/lock.log" 2>&1 3>&- 5<&-; hold "$1" "$stale") &
    holder=$!
    # A minute; five where sleep takes no fraction of a second.
    waits=300
    while [ ! -s "$dir/lock/$run/$1" ] && at_work "$holder" && [ "$waits" -gt 0 ] && [ "$stopped" = 0 ]; do
      pause
      waits=$((waits - 1))
    done
    said=''
    read -r said token place since by <"$dir/lock/$run/$1" || :
    case $said in
      locked)
        holders="$holders $holder"
        locked=$((locked + 1))
        return 0
        ;;
      error) unwritten="$unwritten $2"; return 0 ;;
      held) ;;
      *)
        if [ "$stopped" = 1 ]; then die Failed 'it was told to stop before anything was begun'; fi
        return 0
        ;;
    esac
    wait "$holder" || :
    if [ "$place" = "$here" ]; then stale=$token; else sleep 1; fi
    left=$((left - 1))
    if [ "$stopped" = 1 ]; then die Failed 'it was told to stop before anything was begun'; fi
    if [ "$left" -le 0 ]; then
      die Locked "RKE is at work on the cluster $cluster elsewhere: $(printf '%s' "$by" | cut -c1-200), since $(printf '%s' "$since" | cut -c1-40). Wait for it to end and run again. If it cannot be at work any more, because its computer or its pod's node is gone for good, remove ~/.kindred/rke/$cluster.lock on $2, where it holds the cluster"
    fi
  done
}
lock_cluster() {
  doing='locking the cluster on its control plane machines'
  # What keeps a lock outlives a run that is killed, and must not write where the next one reads.
  mkdir -p "$dir/lock/$run"
  sort -k 2 "$1" >"$dir/to-lock"
  while read -r alias address <&5; do lock_on "$alias" "$address"; done 5<"$dir/to-lock"
}
# What is begun without a lock could meet another run.
require_lock() {
  if [ "$locked" -gt 0 ]; then return 0; fi
  if [ -n "$unwritten" ]; then
    die StateNotKept "the cluster could be locked on none of its control plane machines, as nothing can be written to the home of the SSH user on$unwritten, so nothing has been begun: see that the disk has room, and that .kindred there is a folder of that user"
  fi
  die Unreachable "no control plane machine answers, so the cluster could not be locked, and nothing has been begun. See that SSH gets there, and run again. ssh said:
$(last_lines "$dir/lock.log" | unrevealing)"
}
unlock_cluster() {
  : >"$dir/done"
  for holder in $holders; do wait "$holder" || :; done
}`;
