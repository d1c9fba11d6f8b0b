/** What a new host is told. */
export interface HostSetup {
  readonly name: string;
  readonly address: string;
  /** Public key, `type base64`. */
  readonly authorizedKey: string;
  readonly hostPrivateKey: string;
  readonly sshdConfig: readonly string[];
}

/** Starts the SSH server, which puts itself in the background once it listens, and tells only its log why it does not. */
export const sshdCommand =
  '"$(command -v sshd)" -f /etc/ssh/sshd_config -E /var/log/sshd.log || { cat /var/log/sshd.log >&2; exit 1; }';

/**
 * Gives a new machine its users (`root`, `admin` who may use sudo without a password, `guest` who may not), keys and SSH server.
 */
export function setupScript(setup: HostSetup): string {
  const config = [
    ...setup.sshdConfig,
    'Port 22',
    'HostKey /etc/ssh/host_key',
    'AuthorizedKeysFile /etc/ssh/keys/authorized',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
    'UsePAM no',
    'UseDNS no',
    'MaxStartups 100',
    'MaxSessions 100',
    'PidFile /run/sshd.pid',
    'LogLevel VERBOSE',
  ];
  return `
umask 022
echo '${setup.name}' >/etc/hostname
printf '127.0.0.1 localhost\\n${setup.address} ${setup.name}\\n' >/etc/hosts
grep -q '^sshd:' /etc/passwd || echo 'sshd:x:901:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
id=2001
for user in admin guest; do
  echo "$user:x:$id:$id::/home/$user:/bin/bash" >>/etc/passwd
  echo "$user:x:$id:" >>/etc/group
  echo "$user:*:20000:0:99999:7:::" >>/etc/shadow
  mkdir -m 700 "/home/$user"
  chown "$id:$id" "/home/$user"
  id=$((id + 1))
done
echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin
chmod 440 /etc/sudoers.d/admin
rm -f /etc/ssh/ssh_host_* /etc/ssh/sshd_config.d/*
mkdir -p /etc/ssh/keys
echo '${setup.authorizedKey}' >/etc/ssh/keys/authorized
cat >/etc/ssh/host_key <<'END'
${setup.hostPrivateKey.trimEnd()}
END
chmod 600 /etc/ssh/host_key
cat >/etc/ssh/sshd_config <<'END'
${config.join('\n')}
END
${sshdCommand}
`;
}
