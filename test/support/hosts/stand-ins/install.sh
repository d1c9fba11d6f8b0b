#!/bin/sh
# Stand-in for the installers of RKE2 (https://get.rke2.io) and K3s (https://get.k3s.io): takes the same environment, puts the same files in
# the same places. What it installs is stand-in.cjs.
set -eu
here=/opt/stand-in/code
case "${INSTALL_RKE2_VERSION:+rke2}${INSTALL_K3S_VERSION:+k3s}" in
  rke2) program=rke2 version=$INSTALL_RKE2_VERSION kind=${INSTALL_RKE2_TYPE:-server} ;;
  k3s) program=k3s version=$INSTALL_K3S_VERSION kind=${INSTALL_K3S_EXEC:-server} ;;
  *) echo '[ERROR]  give INSTALL_RKE2_VERSION or INSTALL_K3S_VERSION' >&2; exit 1 ;;
esac
if [ "$(id -u)" != 0 ]; then echo '[ERROR]  this must be run as root' >&2; exit 1; fi
if [ -e /etc/stand-in/fail-install ]; then cat /etc/stand-in/fail-install >&2; exit 1; fi
echo "[INFO]  using $version as release"
if [ -e /etc/stand-in/hold-install ] && [ ! -e /etc/stand-in/go ]; then
  touch /etc/stand-in/held
  while [ ! -e /etc/stand-in/go ]; do sleep 0.1; done
fi

case $program-$kind in
  rke2-server | rke2-agent) unit=rke2-$kind ;;
  k3s-server) unit=k3s ;;
  k3s-agent) unit=k3s-agent ;;
  *) echo "[ERROR]  unknown type $kind" >&2; exit 1 ;;
esac

mkdir -p /usr/local/bin /etc/systemd/system
executable() {
  sed -e "s|@PROGRAM@|$program|" -e "s|@VERSION@|$version|" "$here/program.sh" >"/usr/local/bin/$program.new"
  chmod 755 "/usr/local/bin/$program.new"
  mv -f "/usr/local/bin/$program.new" "/usr/local/bin/$program"
}
# The real ones put the executable in place before the unit and the rest, so that it may tell a version that is not whole yet. Here that
# happens only when it is asked for: otherwise it would hang on a moment whether a killed installer shows it.
if [ -e /etc/stand-in/die-halfway ]; then
  executable
  kill -KILL $$
fi

# The real one puts about 200 MB there; a full disk shows.
mkdir -p "/var/lib/rancher/$program/data"
head -c 1000000 /dev/zero >"/var/lib/rancher/$program/data/runtime"

uninstaller=/usr/local/bin/$program-uninstall.sh
if [ "$unit" = k3s-agent ]; then uninstaller=/usr/local/bin/k3s-agent-uninstall.sh; fi
sed -e "s|@PROGRAM@|$program|g" -e "s|@UNIT@|$unit|" -e "s|@SELF@|$uninstaller|" "$here/uninstall.sh" >"$uninstaller"
chmod 755 "$uninstaller"

cat >"/etc/systemd/system/$unit.service" <<END
[Unit]
Description=$program ($kind)
[Service]
Type=notify
ExecStart=/usr/local/bin/$program $kind
Restart=always
[Install]
WantedBy=multi-user.target
END
executable
if [ "$program" = k3s ] && [ "${INSTALL_K3S_SKIP_ENABLE:-}" != true ]; then systemctl enable "$unit"; fi
if [ "$program" = k3s ] && [ "${INSTALL_K3S_SKIP_START:-}" != true ]; then systemctl restart "$unit"; fi
echo "[INFO]  installed $version"
