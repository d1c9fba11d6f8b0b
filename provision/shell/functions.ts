/**
 * Functions in POSIX shell that scripts start with. They run under dash, bash and BusyBox ash, and use awk,
 * sed, tr, base64, sha256sum, flock, timeout, df and dd.
 */

/**
 * Sets a script up. The result goes to file descriptor 3, which was stdout; the lock is on 9. Output of
 * programs goes to the log and nowhere else. Hangups are ignored, so that a lost connection does not end a
 * script halfway.
 */
export const SETUP = String.raw`set -eu
umask 077
LC_ALL=C; export LC_ALL
PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/rke2/bin"; export PATH
trap '' HUP PIPE
exec 3>&1 1>&2
doing='starting'
answered=0
changed=false
outputs=''
notes=''
secrets=''
log=/dev/null
disks=''`;

/**
 * `mask`: copies stdin without the secrets that the script has read: whole lines of them, and texts in double
 * quotes within.
 */
export const MASK_FUNCTION = String.raw`mask() {
  { printf '%s\n' "$secrets"; printf '\001\n'; cat; } | awk '
    function hide(text,   i) {
      if (length(text) < 4) return
      for (i = n++; i > 0 && length(s[i]) < length(text); i--) s[i + 1] = s[i]
      s[i + 1] = text
    }
    !started && $0 == "\001" { started = 1; next }
    !started {
      hide($0)
      rest = $0
      while (match(rest, /"[^"]*"/)) {
        hide(substr(rest, RSTART + 1, RLENGTH - 2))
        rest = substr(rest, RSTART + RLENGTH)
      }
      next
    }
    {
      line = $0
      for (i = 1; i <= n; i++) {
        out = ""
        while ((at = index(line, s[i])) > 0) {
          out = out substr(line, 1, at - 1) "***"
          line = substr(line, at + length(s[i]))
        }
        line = out line
      }
      print line
    }'
}`;

/** Ending with a `ScriptResult` as one line of JSON. Its text is ASCII; other bytes become question marks. */
export const RESULT_FUNCTIONS = String.raw`json() {
  tr '\t\r' '  ' | tr -d '\001-\010\013\014\016-\037\177' | tr '\200-\377' '?' |
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | awk '{ printf "%s%s", newline, $0; newline = "\\n" }'
}
answer() {
  answered=1
  line="{\"ok\":$1,\"changed\":$changed"
  if [ -n "$2" ]; then line="$line,\"reason\":\"$2\""; fi
  if [ -n "$3" ]; then line="$line,\"message\":\"$(printf '%s\n' "$3" | mask | json)\""; fi
  if [ -n "$outputs" ]; then line="$line,\"outputs\":{$outputs}"; fi
  printf '%s\n' "$line}" >&3
}
die() { answer false "$1" "$2"; exit 1; }
finish() { answer true '' "$notes"; exit 0; }
note() { notes="$notes$notes_end$1"; notes_end='
'; }
notes_end=''
give() {
  secrets="$secrets
$2"
  outputs="$outputs$outputs_end\"$1\":\"$(printf '%s' "$2" | base64 | tr -d '\n')\""
  outputs_end=,
}
outputs_end=''`;

/** Reports a result with the reason when a script ends unexpectedly. */
export const EXIT_TRAP = String.raw`# Cut only once nothing secret is in it: half a secret would not be known for one.
last_lines() { tail -n 12 "$1" 2>/dev/null | mask | cut -c1-300; }
full_disk() {
  for folder in $disks; do
    while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
    # Written in two steps, because what is left may take a few bytes.
    if said=$(dd if=/dev/zero of="$folder/.kindred-space" bs=65536 count=1 2>&1); then said=''; fi
    rm -f "$folder/.kindred-space"
    case $said in
      *[Nn]'o space left'* | *'quota exceeded'*) printf '%s\n' "$folder"; return 0 ;;
    esac
  done
  if grep -qi -e 'no space left on device' -e 'disk quota exceeded' "$log" 2>/dev/null; then
    printf 'that one of its files was written to\n'
    return 0
  fi
  return 1
}
unexpected() {
  code=$?
  trap - EXIT
  set +e
  if [ "$answered" = 1 ]; then exit "$code"; fi
  if folder=$(full_disk); then
    answer false DiskFull "$doing: the disk of $folder on this machine is full. Make room on it (df -h shows how much) and run again
$(last_lines "$log")"
  else
    answer false Failed "$doing: a command ended with exit code $code. Its last words:
$(last_lines "$log")"
  fi
  exit 1
}
trap unexpected EXIT
trap 'doing="$doing (it was told to stop)"; exit 143' TERM INT`;

/**
 * Running programs, with their output in the log. A program that stays as a service must keep neither the
 * lock nor the connection open.
 */
export const RUN_FUNCTIONS = String.raw`have() { command -v "$1" >/dev/null 2>&1; }
run() { "$@" </dev/null >>"$log" 2>&1 3>&-; }
detached() { "$@" </dev/null >>"$log" 2>&1 3>&- 9>&-; }
put() {
  mkdir -p "$(dirname "$1")"
  cat >"$1.kindred-new"
  chmod "$2" "$1.kindred-new"
  mv -f "$1.kindred-new" "$1"
}`;

/** Waiting for something, for a bounded time: `wait_for SECONDS COMMAND...`. */
export const WAIT_FUNCTION = `wait_for() {
  end=$(($(date +%s) + $1))
  shift
  until "$@"; do
    if [ "$(date +%s)" -ge "$end" ]; then return 1; fi
    sleep 2
  done
}`;

/**
 * Ends a script whose program failed: `broken REASON MESSAGE`, with the last lines of the log, or that a disk
 * is full.
 */
export const FAIL_FUNCTION = `broken() {
  if folder=$(full_disk); then
    die DiskFull "$2. The disk of $folder on this machine is full: make room on it (df -h shows how much) and run again"
  fi
  die "$1" "$2. The last lines:
$(last_lines "$log")"
}`;

/** How long a service may take to come up after a reboot, in seconds. */
export const SERVICE_START_SECONDS = 180;

/**
 * The systemd service `unit`. While starting, as after a reboot or between two attempts, it is neither active
 * nor stopped.
 */
export const SERVICE_FUNCTIONS = `active() { detached systemctl is-active --quiet "$unit"; }
starting() {
  case $(systemctl is-active "$unit" </dev/null 2>>"$log" 3>&- 9>&-) in activating | reloading) ;; *) return 1 ;; esac
}
settled() { ! starting; }
unit_lines() {
  if have journalctl; then run journalctl -u "$unit" -n 20 --no-pager -o cat || :; fi
}
restart() {
  run systemctl daemon-reload || broken ServiceFailed "systemctl daemon-reload fails"
  run systemctl enable "$unit" || broken ServiceFailed "systemctl enable $unit fails"
  # First stopped, so that what is active after this is not the old one, about to go.
  detached systemctl stop "$unit" || broken ServiceFailed "systemctl stop $unit fails"
  # Not waited for: a server with etcd only does not count as started before there is an API.
  detached systemctl start --no-block "$unit" || broken ServiceFailed "systemctl start $unit fails"
}`;
