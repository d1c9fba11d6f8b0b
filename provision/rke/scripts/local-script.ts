import { RESULT_FUNCTIONS, MASK_FUNCTION, RUN_FUNCTIONS, SETUP, EXIT_TRAP } from '../../shell/functions';
import { shellQuote } from '../../shell/script';
import { HOST_KEY_CHECKS } from './host-keys';
import { CLUSTER_LOCK } from './lock';
import { STATE_COPIES } from './state-copies';

/** A script for a whole cluster that runs where the plan is executed, with `rke` and `ssh`. */
export function buildRkeScript(cluster: string, id: string, body: string): string {
  return [
    `# ${id} of the cluster ${cluster}`,
    SETUP,
    'TEMPORARY=${TMPDIR:-/tmp}',
    `cluster=${shellQuote(cluster)}`,
    `doing='making a folder for the run'`,
    MASK_FUNCTION,
    RESULT_FUNCTIONS,
    EXIT_TRAP,
    RUN_FUNCTIONS,
    RUN_DIR,
    'exec >>"$log" 2>&1',
    READ_INPUT,
    RUN_RKE,
    HOST_KEY_CHECKS,
    CLUSTER_LOCK,
    STATE_COPIES,
    body,
    '',
  ].join('\n');
}

/**
 * The private directory of a run: in memory if possible, of mode 0700, one per cluster and user, so it is
 * also a lock. The next run clears what a killed run left in it, except the state that RKE wrote last, and
 * which copy that run started from.
 */
const RUN_DIR = String.raw`base=$TEMPORARY
if [ -d /dev/shm ] && [ -w /dev/shm ]; then base=/dev/shm; fi
dir="$base/kindred-rke-$(id -u)-$cluster"
disks=$dir
# What has ended but was not buried, as happens where a container's first process is no init, is not at work.
at_work() {
  kill -0 "$1" 2>/dev/null || return 1
  case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in Z* | X*) return 1 ;; esac
}
held_by() {
  for file in "$dir/pid" "$dir/rke.pid"; do
    holder=$(cat "$file" 2>/dev/null || :)
    # Where processes are few, as in a container that was started anew, this run may have the number of the one that was killed.
    if [ -n "$holder" ] && [ "$holder" != "$$" ] && at_work "$holder"; then return 0; fi
  done
  return 1
}
if ! mkdir -m 700 "$dir" 2>/dev/null; then
  if [ ! -d "$dir" ] || [ -L "$dir" ] || [ ! -O "$dir" ]; then
    die Failed "the folder $dir cannot be made, or is not ours: see who owns it and what stands in the way, and remove it"
  fi
  if held_by; then
    die Locked "process $holder is still at work on the cluster $cluster on this machine. Wait for it to end and run again"
  fi
  for left in "$dir"/* "$dir"/.[!.]*; do
    case $left in
      "$dir/cluster.rkestate" | "$dir/base") ;;
      *) rm -rf "$left" ;;
    esac
  done
fi
if ! (set -C; printf '%s\n' "$$" >"$dir/pid") 2>/dev/null; then
  die Failed "the run's folder $dir cannot be written to: another run has just begun, or its disk is full (df -h $base)"
fi
log="$dir/log"
: >"$log"
holders=''
leave() {
  code=$?
  trap - EXIT
  trap '' TERM INT
  set +e
  if [ "$answered" = 0 ]; then
    if folder=$(full_disk); then
      answer false DiskFull "$doing: the disk of $folder is full. Make room on it (df -h shows how much) and run again"
    else
      answer false Failed "$doing: a command ended with exit code $code. Its last words:
$(last_lines "$log" | unrevealing)"
    fi
    code=1
  fi
  if [ -n "$holders" ]; then unlock_cluster; fi
  rm -rf "$dir"
  exit "$code"
}
trap leave EXIT
# RKE is let finish what it has begun: half a cluster is worse than a late answer.
stopped=0
trap 'stopped=1' TERM INT
sha() { if have sha256sum; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1; }
unrevealing() { grep -v -E -e 'PRIVATE KEY' -e '[A-Za-z0-9+/=]{40,}' || :; }
give_file() {
  outputs="$outputs$outputs_end\"$1\":\"$(base64 <"$2" | tr -d '\n')\""
  outputs_end=,
}`;

/** Writes each value of stdin to a file of its own; then the files that cluster.yml names, at their paths. */
const READ_INPUT = String.raw`doing='reading its input'
mkdir "$dir/in" "$dir/work"
while read -r name value; do
  case $name in '' | *[!a-z0-9_]*) continue ;; esac
  printf '%s' "$value" | base64 -d >"$dir/in/$name"
done
for name in cluster_yml layout ssh_config machines; do
  if [ ! -s "$dir/in/$name" ]; then die Failed "the value $name did not come in on stdin, or is empty"; fi
done
# The masks are JSON strings. RKE's log escapes as these do; what it passes on from others may not.
inner() { sed -e 's/^"//' -e 's/"$//' "$dir/in/masks" 2>/dev/null || :; }
secrets=$(
  cat "$dir"/in/key_* 2>/dev/null || :
  inner
  inner | sed -e 's/\\"/"/g' -e 's/\\\\/\\/g'
)
while read -r name path; do
  if [ ! -s "$dir/in/$name" ]; then die Failed "the value $name, which is to be the file $path, did not come in on stdin, or is empty"; fi
  mkdir -p "$(dirname "$dir/work/$path")"
  cp "$dir/in/$name" "$dir/work/$path"
  # OpenSSH takes no key whose last line has no end.
  if [ -n "$(tail -c 1 "$dir/work/$path")" ]; then printf '\n' >>"$dir/work/$path"; fi
  chmod 600 "$dir/work/$path"
done <"$dir/in/layout"
cp "$dir/in/cluster_yml" "$dir/cluster.yml"
cp "$dir/in/ssh_config" "$dir/ssh_config"
flags=$(cat "$dir/in/flags" 2>/dev/null || :)`;

/** Running `rke` without this process' environment, and its messages when it failed. */
const RUN_RKE = String.raw`if ! have rke; then
  die RkeMissing "the program rke is not on the PATH of this machine: install RKE 1.x (https://github.com/rancher/rke/releases), the last is v1.8"
fi
rke_version=$(env -i PATH="$PATH" HOME="$dir" rke --version </dev/null 2>/dev/null | sed -n 's/^rke version //p' | head -n 1)
case $rke_version in
  v1.*) ;;
  *) note "rke says that it is version '$rke_version'; this was written for v1.x" ;;
esac
rke_run() {
  : >"$log"
  (cd "$dir/work" && exec env -i PATH="$PATH" HOME="$dir" TMPDIR="$dir" rke "$@" </dev/null >>"$log" 2>&1 3>&-) &
  child=$!
  printf '%s\n' "$child" >"$dir/rke.pid"
  while :; do
    code=0
    wait "$child" || code=$?
    if ! kill -0 "$child" 2>/dev/null; then break; fi
  done
  rm -f "$dir/rke.pid"
  return "$code"
}
rke_words() {
  if grep -q -e 'level=fatal' -e 'level=error' -e '^panic:' "$log"; then
    grep -e 'level=fatal' -e 'level=error' -e '^panic:' "$log"
  else
    tail -n 5 "$log"
  fi | unrevealing | mask | cut -c1-600 | tail -n 5
  if grep -q 'administratively prohibited' "$log"; then
    printf '%s\n' 'The SSH server of that machine forbids tunnels: see AllowTcpForwarding and AllowStreamLocalForwarding in its /etc/ssh/sshd_config, and use a user of the group docker, not root, on CentOS and RHEL.'
  fi
}`;
