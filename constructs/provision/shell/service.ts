/** A service of systemd: `unit`. */
export const SERVICE = `active() { detached systemctl is-active --quiet "$unit"; }
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
