#!/bin/sh
# Stand-in for the uninstaller of @PROGRAM@.
set -u
if [ -e /etc/stand-in/fail-uninstall ]; then cat /etc/stand-in/fail-uninstall >&2; exit 1; fi
systemctl stop @UNIT@
systemctl disable @UNIT@
rm -f /etc/systemd/system/@UNIT@.service
systemctl daemon-reload
rm -rf /etc/rancher/@PROGRAM@ "${RKE2_DATA_DIR:-${K3S_DATA_DIR:-/var/lib/rancher/@PROGRAM@}}"
rm -f /usr/local/bin/@PROGRAM@ @SELF@
