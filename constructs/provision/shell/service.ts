/** How long a service may take to come up after a reboot, in seconds. */
export const STARTING_SECONDS = 180;

/** A service of systemd: `unit`. One that is starting, as after a reboot or between two attempts, is neither active nor gone. */
export const SERVICE = `active() { detached systemctl is-active --quiet "$unit"; }
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
