/** Waiting for something, for a bounded time: `wait_for SECONDS COMMAND...`. */
export const WAIT = `wait_for() {
  end=$(($(date +%s) + $1))
  shift
  until "$@"; do
    if [ "$(date +%s)" -ge "$end" ]; then return 1; fi
    sleep 2
  done
}`;

/** Ends a script whose program failed: \`broken REASON MESSAGE\`, with the last lines of the log, or that a disk is full. */
export const BROKEN = `broken() {
  if folder=$(full_disk); then
    die DiskFull "$2. The disk of $folder on this machine is full: make room on it (df -h shows how much) and run again"
  fi
  die "$1" "$2. The last lines:
$(last_lines "$log")"
}`;
