#!/bin/sh
# Stand-in for the executable @PROGRAM@.
case "${1:-}" in
  --version | -v)
    echo '@PROGRAM@ version @VERSION@ (stand-in)'
    echo 'go version go1.26.0'
    ;;
  kubectl)
    shift
    exec /opt/stand-in/bin/kubectl "$@"
    ;;
  server | agent | etcd-snapshot)
    exec /opt/stand-in/bin/node /opt/stand-in/code/stand-in.cjs @PROGRAM@ @VERSION@ "$@"
    ;;
  *)
    echo "the stand-in for @PROGRAM@ does not know: $*" >&2
    exit 1
    ;;
esac
