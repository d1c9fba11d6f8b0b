#!/bin/bash
# The first process of a test host. It runs in namespaces of its own, makes the host's file system, and waits. When the pipe at its
# descriptor 3 closes, however the test ended, it ends, and the kernel takes away everything it started, mounted and configured.
#
# usage: init.sh <host name> <size of the disk> [<source>:<target>]...
set -eu
read -r pid _ </proc/self/stat # still the machine's /proc: the pid by which the test knows this process
hostname "$1"
size=$2
shift 2

mount --make-rprivate /
# /mnt is only a mount point here, in this namespace alone, so that nothing can be left behind.
mount -t tmpfs -o "size=$size,mode=755" host /mnt
cd /mnt
mkdir upper work root own
mount -t overlay -o "lowerdir=/,upperdir=$PWD/upper,workdir=$PWD/work" host root

# What a fresh machine has of its own, on the same disk.
for folder in root home tmp run var/log var/tmp; do
  mkdir -p "own/$folder" "root/$folder"
  mount --bind "own/$folder" "root/$folder"
done
chmod 700 root/root
chmod 1777 root/tmp root/var/tmp
mkdir -p root/run/sshd root/run/lock

for pair in "$@"; do
  if [ -d "${pair%%:*}" ]; then
    mkdir -p "root${pair#*:}"
  else
    mkdir -p "$(dirname "root${pair#*:}")"
    : >"root${pair#*:}"
  fi
  mount --bind -o ro "${pair%%:*}" "root${pair#*:}"
  mount -o remount,bind,ro "root${pair#*:}"
done

mount -t proc proc root/proc
# The kernel is the machine's: its settings are not for a test to change, but those of the network namespace.
mount --bind root/proc/sys root/proc/sys
mount --bind root/proc/sys/net root/proc/sys/net
mount -o remount,bind,ro root/proc/sys
[ ! -e root/proc/sysrq-trigger ] || mount --bind /dev/null root/proc/sysrq-trigger
mount -t sysfs -o ro sysfs root/sys

mount -t tmpfs -o size=1m,mode=755 dev root/dev
for device in null zero full random urandom tty; do
  : >"root/dev/$device"
  mount --bind "/dev/$device" "root/dev/$device"
done
mkdir root/dev/pts root/dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts root/dev/pts
ln -s pts/ptmx root/dev/ptmx
ln -s /proc/self/fd root/dev/fd
ln -s /proc/self/fd/0 root/dev/stdin
ln -s /proc/self/fd/1 root/dev/stdout
ln -s /proc/self/fd/2 root/dev/stderr
mount -t tmpfs -o size=64m shm root/dev/shm

cd root
mkdir -p tmp/.old
pivot_root . tmp/.old
cd /
ip link set lo up
umount -l /tmp/.old
rmdir /tmp/.old
echo "$pid"
exec >/dev/null 2>&1
# bash also collects the children of others, as a first process must.
read -r _ <&3 || true
