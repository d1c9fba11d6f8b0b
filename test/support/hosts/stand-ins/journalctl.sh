#!/bin/sh
# Stand-in for journalctl -u UNIT -n LINES.
unit=''
lines=100
while [ $# -gt 0 ]; do
  case $1 in
    -u) unit=${2%.service}; shift ;;
    -n) lines=$2; shift ;;
    -o) shift ;;
  esac
  shift
done
tail -n "$lines" "/run/stand-in/$unit/log"
