/**
 * Checks the host key of every machine that RKE will connect to, since RKE checks none itself. `check_hosts`
 * checks those in ssh_config, bastion first. `check_leaving`, once the state is available, checks those that
 * RKE will remove from the cluster, and writes the control planes among them to `leaving-machines`. A machine
 * with a changed or unknown key ends the run before anything is sent to any machine.
 *
 * Each machine has one key, so a key of another type does not bypass the check. It is the one that the runner
 * knows (stdin `host_keys`, then `met_keys`; lines of `[address]:port type base64`, or `address type base64`
 * for all ports; the first match counts), else the one in the plan (stdin `known_hosts`). A machine that
 * leaves is not in the plan any more: its key is the runner's, else the one that an earlier run has kept with
 * the state. The keys that are kept are those that were given, so not those that a runner without a store of
 * keys accepted on first use.
 *
 * Caveat: machines that do not respond are skipped, because RKE skips them too, and reports it.
 */
export const HOST_KEY_CHECKS = String.raw`known_hosts() {
  {
    cat "$dir/in/host_keys" "$dir/in/met_keys" "$dir/kept-keys" 2>/dev/null | sed 's/^/carrier /'
    sed 's/^/plan /' "$dir/in/known_hosts" 2>/dev/null || :
    sed 's/^/host /' "$1"
  } | awk '
    $1 == "carrier" && !($2 in line) { line[$2] = NR; key[$2] = $3 " " $4 }
    $1 == "plan" { given[$2] = $3 " " $4 }
    $1 == "host" {
      own = "[" $3 "]:" $4
      if (own in line && (!($3 in line) || line[own] < line[$3])) print $2, key[own]
      else if ($3 in line) print $2, key[$3]
      else if ($2 in given) print $2, given[$2]
    }'
}
# The keys of the machines in $1, as lines of "[address]:port type base64".
pins() { awk 'NR == FNR { at[$1] = "[" $2 "]:" $3; next } $1 in at { print at[$1], $2, $3 }' "$1" "$dir/known_hosts"; }
is_known() { grep -q "^$1 " "$dir/known_hosts"; }
# Ends after the exchange of keys: nobody is logged in, and nothing runs there. What it said is judged afterwards.
meet() {
  policy=yes
  keys=known_hosts
  if [ "$unknown_hosts" = accept ] && ! is_known "$1"; then
    policy=accept-new
    keys="met/$1.keys"
  fi
  cd "$dir"
  exec ssh -F ssh_config -o StrictHostKeyChecking="$policy" -o UserKnownHostsFile="$keys" \
    -o PreferredAuthentications=none "$1" true </dev/null >/dev/null 2>"met/$1.log" 3>&-
}
leaving_advice=''
changed_keys=''
unknown_keys=''
judge() {
  if grep -q -e '^Host key verification failed' -e 'no matching host key type found' "$dir/met/$1.log"; then
    cat "$dir/met/$1.log" >>"$log"
    if is_known "$1"; then changed_keys="$changed_keys $2"; else unknown_keys="$unknown_keys $2"; fi
  elif [ -s "$dir/met/$1.keys" ]; then
    cat "$dir/met/$1.keys" >>"$dir/known_hosts"
  fi
}
# A few at once: sshd turns connections away when many wait to log in (MaxStartups of sshd_config(5)).
meet_all() {
  mkdir -p "$dir/met"
  while :; do
    pids=''
    met=''
    count=0
    while [ "$count" -lt 8 ] && read -r alias address port; do
      meet "$alias" &
      pids="$pids $!"
      count=$((count + 1))
      met="$met$alias $address
"
      # All others are behind it.
      if [ "$alias" = bastion ]; then break; fi
    done
    if [ -z "$pids" ]; then break; fi
    for pid in $pids; do wait "$pid" || :; done
    if [ "$stopped" = 1 ]; then die Failed "it was told to stop before anything was begun"; fi
    while read -r alias address; do
      if [ -n "$alias" ]; then judge "$alias" "$address"; fi
    done <<END
$met
END
    refuse_hosts
  done <"$1"
}
refuse_hosts() {
  if [ -n "$changed_keys" ]; then
    die HostKeyMismatch "another host key than the one that is known is shown by$changed_keys, so nothing was sent to any machine: no login, no state. If it was installed anew, give its new key (the first two words of /etc/ssh/ssh_host_ed25519_key.pub, read on the machine itself) as the hostKey of its node, or in spec.hostKeys with a cluster.yml. If not, somebody else answers at its address$leaving_advice"
  fi
  if [ -n "$unknown_keys" ]; then
    die HostKeyUnknown "no host key is known of$unknown_keys, so nothing was sent to any machine. Give it (the first two words of /etc/ssh/ssh_host_ed25519_key.pub on the machine) as the hostKey of its node, or in spec.hostKeys with a cluster.yml"
  fi
}
check_hosts() {
  doing='checking the host keys of the machines'
  unknown_hosts=$(cat "$dir/in/unknown_hosts" 2>/dev/null || echo refuse)
  awk '$1 == "Host" { alias = $2 } $1 == "HostName" { address = $2 } $1 == "Port" { print alias, address, $2 }' \
    "$dir/ssh_config" >"$dir/hosts"
  known_hosts "$dir/hosts" >"$dir/known_hosts"
  pins "$dir/hosts" >"$dir/pins"
  meet_all "$dir/hosts"
}
check_leaving() {
  doing='checking the host keys of the machines that leave'
  leaving_advice=". It is about to leave the cluster. If it is yours: put it back among the nodes with its new key, run, and take it out again; or turn it off, since RKE passes over a machine that does not respond"
  # Where the runner has keys of its own, those that lie on the machines are not the ones that count.
  if [ ! -s "$dir/in/host_keys" ]; then
    leaving_advice="$leaving_advice. If its address is another machine's by now: remove ~/.kindred/rke/$cluster.hosts on every control plane machine that has it; then RKE tries to log in at that address, unchecked"
  fi
  : >"$dir/leaving-machines"
  if [ ! -s "$dir/cluster.rkestate" ]; then return 0; fi
  awk -F '"' '
    function end() { if (address != "") print address, port, user, key, role; address = "" }
    $2 == "address" { end(); address = $4; port = 22; user = "nobody"; key = "none"; role = "other" }
    $2 == "port" && $4 != "" { port = $4 }
    $2 == "user" && $4 != "" { user = $4 }
    $2 == "sshKeyPath" && $4 != "" { key = $4 }
    $2 == "controlplane" { role = $2 }
    /}/ { end() }' "$dir/cluster.rkestate" | awk '!seen[$1 " " $2]++' |
    grep -E '^[A-Za-z0-9:][A-Za-z0-9.:_-]* [0-9]+ [a-z_][a-z0-9_.-]* [A-Za-z0-9._/-]+ [a-z]+$' >"$dir/in-state" || return 0
  # By the address alone, as RKE does: with another port it is the same machine, and RKE uses the new one.
  awk 'NR == FNR { here[$2] = 1; next } !($1 in here) { print "l" n++, $0 }' \
    "$dir/hosts" "$dir/in-state" >"$dir/left-plan"
  known_hosts "$dir/left-plan" >>"$dir/known_hosts"
  pins "$dir/left-plan" >>"$dir/pins"
  jump=''
  if grep -q '^bastion ' "$dir/hosts"; then jump='ProxyJump bastion'; fi
  : >"$dir/leaving"
  while read -r alias address port user key role; do
    # Of a machine whose key was never given or met, nothing can be checked.
    if ! is_known "$alias" && [ "$unknown_hosts" != accept ]; then continue; fi
    printf '%s %s %s\n' "$alias" "$address" "$port" >>"$dir/leaving"
    if [ "$role" = controlplane ]; then printf '%s %s\n' "$alias" "$address" >>"$dir/leaving-machines"; fi
    printf '%s\n' "Host $alias" "HostName $address" "HostKeyAlias $alias" "Port $port" "User $user" \
      "IdentityFile work/$key" "$jump" >>"$dir/ssh_config"
  done <"$dir/left-plan"
  meet_all "$dir/leaving"
}`;
