/** Pieces of a preflight for machines on which Docker runs the cluster, as with RKE. Like those of `preflight.ts`. */

/** That the user who is logged in may use Docker. */
export const DOCKER_GROUP = `if ! have docker; then
  problem 'the program docker' 'is missing; install a version that RKE supports'
elif [ "$(id -u)" -ne 0 ] && ! id -nG | tr ' ' '\\n' | grep -qx docker; then
  problem user "$(id -un) is not in the group docker; usermod -aG docker $(id -un), then log in again"
elif ! run docker version; then
  problem 'docker' "does not answer the user $(id -un); see systemctl status docker"
fi`;

/** On the Red Hat family, Docker cannot be reached through a tunnel of root's. Source: RKE's requirements of the operating system. */
export const ROOT_ON_RED_HAT = `if [ "$(id -u)" -eq 0 ] && grep -qsE '^ID(_LIKE)?=.*(rhel|centos|fedora)' /etc/os-release; then
  problem user 'is root, whose SSH tunnels to Docker are refused on CentOS and Red Hat; name a user of the group docker'
fi`;

/** OpenSSH 6.7 and later can forward sockets. Source: RKE's requirements of SSH. */
export const SSH_VERSION = `ssh_version=$(ssh -V 2>&1 </dev/null | sed -n 's/^OpenSSH_\\([0-9]*\\)[.]\\([0-9]*\\).*/\\1 \\2/p')
if [ -n "$ssh_version" ] && [ "\${ssh_version% *}" -lt 7 ] && { [ "\${ssh_version% *}" -lt 6 ] || [ "\${ssh_version#* }" -lt 7 ]; }; then
  problem 'OpenSSH' "is \${ssh_version% *}.\${ssh_version#* }; tunnels to a socket need 6.7 or later"
fi`;

/** That mounts made by the kubelet's container are seen by others. */
export const MOUNT_FLAGS = `if have systemctl; then
  flags=$(systemctl show docker.service -p MountFlags --value 2>/dev/null </dev/null || :)
  case $flags in
    '' | shared | 1048576) ;;
    *) problem 'MountFlags of docker.service' "is $flags; set MountFlags=shared in /etc/systemd/system/docker.service.d and restart docker" ;;
  esac
fi`;

/** That the kubelet manages control groups as Docker does. Takes the kubelet's driver, if it is told one. */
export function cgroupDriver(kubelet: string | undefined): string {
  if (kubelet === undefined) return ':';
  return `driver=$(docker info --format '{{.CgroupDriver}}' 2>>"$log" </dev/null || :)
if [ -n "$driver" ] && [ "$driver" != ${kubelet} ]; then
  problem 'services.kubelet.extraArgs.cgroup-driver' "is ${kubelet}, but Docker uses $driver; let both be the same"
fi`;
}
