#!/bin/sh
# A Kubernetes node in namespaces and control groups of its own: containerd, kubelet and kube-proxy.
#
# The pipe at descriptor 3 belongs to the process that started the node. When it closes, in whatever way, `init`
# exits, and the kernel ends everything that the node started, mounted and configured; `keep` then removes the
# node's control groups. Two lines in that pipe let it go on: `start` when the node's network is ready, and
# `kubelet` when its images are imported.
#
# usage: node.sh keep FOLDER   FOLDER has what local/node/node.ts writes; its last name is the node's name
# environment: KUBELET, KUBE_PROXY: the paths of these programs; NODE_IP
set -eu
folder=$2
name=${folder##*/}

# The mount point of a hierarchy of control groups, by its controllers in /proc/self/cgroup; version 2 has none.
mount_point() {
  if [ -z "$1" ]; then findmnt -nfo TARGET -t cgroup2; else findmnt -nfo TARGET -t cgroup -O "$1"; fi
}

# The folders of the node's control groups: one in each hierarchy, below the group that this process is in. Other
# control planes have nodes of the same name, so the pid of this process is part of theirs.
groups() {
  while IFS=: read -r _ controllers path; do
    if point=$(mount_point "$controllers"); then echo "${point%/}${path%/}/$name-$$"; fi
  done </proc/self/cgroup
}

join_group() {
  mkdir "$1"
  # A new cpuset is empty, and nothing can run in it.
  for file in cpuset.cpus cpuset.mems; do
    if [ -e "$1/$file" ] && [ ! -e "$1/cgroup.controllers" ]; then cat "$1/../$file" >"$1/$file"; fi
  done
  echo 0 >"$1/cgroup.procs"
}

keep() {
  group_list=$(groups)
  (
    for group in $group_list; do join_group "$group"; done
    exec unshare --pid --fork --kill-child --mount --net --uts --ipc --cgroup -- /bin/sh "$0" init "$folder"
  ) &
  exec 3<&-
  status=0
  wait $! || status=$?
  for group in $group_list; do
    [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} +
  done
  exit "$status"
}

# Mounts over a file of /proc/sys, which the kubelet would write: the machine's setting stays as it is.
pretend() {
  echo "$2" >"$folder/sysctl"
  mv "$folder/sysctl" "$folder/sysctl-${1##*/}"
  mount --bind "$folder/sysctl-${1##*/}" "/proc/sys/$1"
}

init() {
  read -r pid _ </proc/self/stat # still the machine's /proc
  trap 'exit 1' TERM
  hostname "$name"
  mount --make-rprivate /
  mount -t proc proc /proc
  pretend vm/overcommit_memory 1
  pretend vm/panic_on_oom 0
  pretend kernel/panic 10
  pretend kernel/panic_on_oops 1
  pretend kernel/keys/root_maxkeys 1000000
  pretend kernel/keys/root_maxbytes 25000000
  mount_groups
  # Paths that the kubelet, containerd and the CNI plugins cannot be told to change.
  mkdir -p "$folder/lib" "$folder/log"
  mount --bind "$folder/lib" /var/lib
  mount --bind "$folder/log" /var/log
  mount -t tmpfs -o mode=755 run /run
  ip link set lo up
  echo "$pid" >"$folder/pid.new"
  mv "$folder/pid.new" "$folder/pid"
  await start
  supervise containerd containerd --config="$folder/containerd.toml"
  await kubelet
  supervise kubelet "$KUBELET" --config="$folder/kubelet.yaml" --kubeconfig="$folder/kubelet.kubeconfig" \
    --hostname-override="$name" --node-ip="$NODE_IP"
  supervise kube-proxy "$KUBE_PROXY" --config="$folder/kube-proxy.yaml"
  (read -r _ <&3 || true; kill -TERM 1) &
  exec 3<&-
  # It reaps orphaned processes too, as a first process must.
  wait
}

await() {
  read -r line <&3 || exit 0
  [ "$line" = "$1" ] || exit 2
}

# Runs a program; the node ends when it does.
supervise() {
  program=$1
  shift
  (
    status=0
    HOME=$folder "$@" >>"$folder/$program.log" 2>&1 3<&- || status=$?
    echo "$program exited with code $status: see $folder/$program.log"
    kill -TERM 1
  ) &
}

mount_groups() {
  hierarchies=$(cat /proc/self/cgroup)
  mount -t sysfs sysfs /sys
  case $hierarchies in
  0::*)
    if [ "$(echo "$hierarchies" | wc -l)" = 1 ]; then
      mount_unified
      return
    fi
    ;;
  esac
  mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
  echo "$hierarchies" | while IFS=: read -r _ controllers _; do
    case $controllers in
    '') point=unified type=cgroup2 options=rw ;;
    name=*) point=${controllers#name=} type=cgroup options=none,$controllers ;;
    *) point=$controllers type=cgroup options=$controllers ;;
    esac
    mkdir "/sys/fs/cgroup/$point"
    mount -t "$type" -o "$options" cgroup "/sys/fs/cgroup/$point"
  done
}

# Version 2 allows no processes in a group whose controllers are given to groups below it.
mount_unified() {
  mount -t cgroup2 cgroup /sys/fs/cgroup
  mkdir /sys/fs/cgroup/init
  echo 0 >/sys/fs/cgroup/init/cgroup.procs
  for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
  done
}

"$1"
