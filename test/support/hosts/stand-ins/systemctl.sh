#!/bin/sh
# Stand-in for systemctl: units of Type=notify with Restart=always, and the few commands that scripts use. A unit counts as active once its
# program has written <runtime folder>/ready with its pid, and until that process is gone.
set -eu
quiet=false
block=true
words=''
for word in "$@"; do
  case $word in
    --quiet | -q) quiet=true ;;
    --no-block) block=false ;;
    --now | --no-pager) ;;
    -*) echo "systemctl (stand-in): unknown option $word" >&2; exit 1 ;;
    *) words="$words $word" ;;
  esac
done
set -- $words
verb=${1:-}
unit=${2:-}
unit=${unit%.service}
file=/etc/systemd/system/$unit.service
folder=/run/stand-in/$unit
wanted=/etc/systemd/system/multi-user.target.wants/$unit.service

known() {
  if [ ! -e "$file" ]; then echo "Unit $unit.service could not be found." >&2; exit "$1"; fi
}
state() {
  if [ -s "$folder/supervisor" ] && [ -e "/proc/$(cat "$folder/supervisor")" ]; then
    if [ -s "$folder/ready" ] && [ -e "/proc/$(cat "$folder/ready")" ]; then echo active; else echo activating; fi
  else
    echo inactive
  fi
}
stop() {
  if [ "$(state)" = inactive ]; then return 0; fi
  supervisor=$(cat "$folder/supervisor")
  # It leads a session of its own: all that the service started goes with it.
  pkill -TERM -s "$supervisor" || :
  for i in $(seq 100); do
    if ! pgrep -s "$supervisor" >/dev/null; then break; fi
    if [ "$i" = 50 ]; then pkill -KILL -s "$supervisor" || :; fi
    sleep 0.1
  done
  rm -f "$folder/supervisor" "$folder/ready"
}
start() {
  known 5
  mkdir -p "$folder"
  rm -f "$folder/ready"
  program=$(sed -n 's/^ExecStart=//p' "$file")
  # shellcheck disable=SC2016
  setsid -f sh -c '
    echo "$$" >"$1/supervisor"
    while :; do
      READY_FILE=$1/ready $2 || :
      echo "the service ended; it is started again"
      sleep 1
    done' service "$folder" "$program" </dev/null >>"$folder/log" 2>&1
  until [ -s "$folder/supervisor" ]; do sleep 0.02; done
  if [ "$block" = true ]; then until [ "$(state)" = active ]; do sleep 0.1; done; fi
}

case $verb in
  daemon-reload) ;;
  enable) known 1; mkdir -p "${wanted%/*}"; ln -sf "$file" "$wanted" ;;
  disable) rm -f "$wanted" ;;
  is-enabled) [ -e "$wanted" ] ;;
  is-active)
    now=$(state)
    if [ "$quiet" = false ]; then echo "$now"; fi
    [ "$now" = active ] || exit 3
    ;;
  start) if [ "$(state)" = inactive ]; then start; fi ;;
  restart) known 5; stop; start ;;
  stop) if [ ! -e "$file" ] && [ ! -d "$folder" ]; then known 5; fi; stop ;;
  *) echo "systemctl (stand-in): unknown command $verb" >&2; exit 1 ;;
esac
