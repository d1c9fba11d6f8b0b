/**
 * Copies of RKE's state on the control plane machines, which have the key of its certificate authority
 * anyway. A copy is a line of `kindred-rke-state 1 SERIAL SHA256` and the state, in the home of the SSH user,
 * of mode 0600. A torn or changed copy does not match its hash and is ignored.
 *
 * Beside it lie the host keys that the last run was given, after a line of `kindred-rke-hosts 1 SERIAL SHA256`:
 * a later run, whose plan has some of the machines no more, checks by them the machines that leave. The newest
 * counts, so that a machine that did not respond for a while brings no old key back. The serial is the time in
 * seconds, at least one more than the last, because runs that each miss a machine do not see each other's.
 */
export const STATE_COPIES = String.raw`copy=".kindred/rke/$cluster.state"
keys_copy=".kindred/rke/$cluster.hosts"
on() { (cd "$dir" && exec ssh -F ssh_config "$@" 2>>"$log" 3>&-); }
serial=0
keys_serial=0
kept=''
unreachable=''
running=''
is_serial() {
  case $1 in '' | 0* | *[!0-9]* | ????????????????*) return 1 ;; esac
}
offer() {
  if is_serial "$2" && [ "$2" -gt "$serial" ]; then
    mv "$1" "$dir/newest"
    serial=$2
    kept=$3
  fi
}
# A copy: its kind (state or hosts), serial and hash in a line, then its content.
envelope() {
  printf 'kindred-rke-%s 1 %s %s\n' "$1" "$2" "$3"
  cat "$4"
}
# Takes the content of a copy out of a file, which may begin with other lines. Fails if it is torn.
opened() {
  sed -n "/^kindred-rke-$1 1 /,\$p" "$2" | sed 1d >"$dir/opened"
  found=$(sed -n "s/^kindred-rke-$1 1 \([0-9]*\) .*/\1/p" "$2" | head -n 1)
  sum=$(sed -n "s/^kindred-rke-$1 1 [0-9]* //p" "$2" | head -n 1)
  [ -n "$sum" ] && [ "$sum" = "$(sha <"$dir/opened")" ]
}
offer_keys() {
  sed -n 's/^kindred-rke-keys //p' "$dir/answer" >"$dir/keys-on-$1"
  if ! opened hosts "$dir/keys-on-$1" || ! is_serial "$found" || [ "$found" -le "$keys_serial" ]; then return 0; fi
  if grep -q -v -E '^\[[A-Za-z0-9:._-]+\]:[0-9]+ [a-z0-9@.-]+ [A-Za-z0-9+/=]+$' "$dir/opened"; then return 0; fi
  keys_serial=$found
  mv "$dir/opened" "$dir/kept-keys"
}
look_at() {
  if ! on "$1" "sh -c 'sed \"s/^/kindred-rke-keys /\" $keys_copy 2>/dev/null; echo; if [ -f $copy ]; then cat $copy; else echo kindred-rke-none; docker ps -a --format \"{{.Names}}\" 2>/dev/null; fi; exit 0'" </dev/null >"$dir/answer"; then
    unreachable="$unreachable $2"
    return 0
  fi
  offer_keys "$1"
  if grep -q '^kindred-rke-state 1 ' "$dir/answer"; then
    if opened state "$dir/answer"; then
      offer "$dir/opened" "$found" "$sum"
    else
      note "the copy of the state on $2 is torn (~/$copy) and was passed over"
    fi
  elif ! grep -q '^kindred-rke-none$' "$dir/answer"; then
    unreachable="$unreachable $2"
  elif grep -q -x -e etcd -e kube-apiserver "$dir/answer"; then
    running="$running $2"
  fi
}
# Whether a killed run left a state here that counts: one that is whole, if nobody went on since from what it had itself gone on from.
left_behind() {
  if ! tail -n 1 "$dir/cluster.rkestate" 2>/dev/null | grep -q '^}$'; then return 1; fi
  left=''
  from=''
  read -r left from 2>/dev/null <"$dir/base" || :
  case $left in '' | *[!0-9]*) left=0 ;; esac
  [ "$serial" -eq 0 ] || [ "$from" = "$sum" ]
}
find_state() {
  doing="looking for the state of the cluster"
  if [ -s "$dir/in/state" ]; then offer "$dir/in/state" "$(cat "$dir/in/serial" 2>/dev/null || echo 1)" ''; fi
  while read -r alias address <&4; do look_at "$alias" "$address"; done 4<"$dir/in/machines"
  sum=''
  if [ "$serial" -gt 0 ]; then sum=$(sha <"$dir/newest"); fi
  if left_behind; then
    if [ "$serial" -eq 0 ]; then serial=$left; fi
  else
    rm -f "$dir/cluster.rkestate"
    if [ "$serial" -gt 0 ]; then
      printf '%s %s\n' "$serial" "$sum" >"$dir/base"
      mv "$dir/newest" "$dir/cluster.rkestate"
    fi
  fi
  if [ -s "$dir/cluster.rkestate" ]; then
    if [ -n "$unreachable" ]; then note "these machines could not be asked for the state; that of another was taken:$unreachable"; fi
    return 0
  fi
  if [ -n "$running" ]; then
    die StateLost "a cluster of RKE runs on$running, but its state is nowhere: without it RKE would give the cluster new certificates and break it. Put its cluster.rkestate into the run (the state of Pulumi or the state Secret has it), or, if the cluster is none of yours, clean the machines"
  fi
  if [ -n "$unreachable" ]; then
    die Unreachable "nobody could ask whether the state of the cluster lies on$unreachable. See that SSH gets there with the pinned host key, and run again. ssh said:
$(last_lines "$log" | unrevealing)"
  fi
}
# A connection that is lost may leave a torn copy, which its hash shows.
write_copy() {
  on "$1" "sh -c 'umask 077; mkdir -p .kindred/rke && cat >$2.new && mv -f $2.new $2'" >/dev/null
}
# Writes the state to every control plane machine, if it is another than what lies there; fails when it lies on none.
keep_state() {
  if [ ! -s "$dir/cluster.rkestate" ]; then return 0; fi
  sum=$(sha <"$dir/cluster.rkestate")
  if [ "$sum" = "$kept" ]; then return 0; fi
  serial=$((serial + 1))
  envelope state "$serial" "$sum" "$dir/cluster.rkestate" >"$dir/envelope"
  written=0
  not_written=''
  while read -r alias address <&4; do
    if write_copy "$alias" "$copy" <"$dir/envelope"; then
      written=$((written + 1))
    else
      not_written="$not_written $address"
    fi
  done 4<"$dir/in/machines"
  if [ "$written" -eq 0 ]; then return 1; fi
  printf '%s %s\n' "$serial" "$sum" >"$dir/base"
  kept=$sum
  if [ -n "$not_written" ]; then note "the state could not be kept on$not_written (is the disk full?); another machine has it"; fi
}
same_text() { [ "$(cat "$dir/$1")" = "$(cat "$dir/$2" 2>/dev/null)" ]; }
# Writes the host keys to every control plane machine that responded and has others.
keep_keys() {
  sort -u "$dir/pins" >"$dir/own-keys"
  if [ "$keys_serial" -eq 0 ] && [ ! -s "$dir/own-keys" ]; then return 0; fi
  if ! same_text own-keys kept-keys; then
    now=$(date +%s)
    keys_serial=$((keys_serial < now ? now : keys_serial + 1))
  fi
  envelope hosts "$keys_serial" "$(sha <"$dir/own-keys")" "$dir/own-keys" >"$dir/keys-envelope"
  not_written=''
  while read -r alias address <&4; do
    if [ ! -e "$dir/keys-on-$alias" ] || same_text keys-envelope "keys-on-$alias"; then continue; fi
    if ! write_copy "$alias" "$keys_copy" <"$dir/keys-envelope"; then not_written="$not_written $address"; fi
  done 4<"$dir/in/machines"
  if [ -n "$not_written" ]; then note "the host keys could not be kept on$not_written (is the disk full?), so a later run does not check by them the machines that leave"; fi
}
forget_state() {
  while read -r alias address <&4; do
    on "$alias" "sh -c 'rm -f $copy $copy.new $keys_copy $keys_copy.new; rmdir .kindred/rke .kindred 2>/dev/null; exit 0'" </dev/null >/dev/null || :
  done 4<"$dir/in/machines"
}
give_state() {
  if [ -s "$dir/cluster.rkestate" ]; then
    give_file state "$dir/cluster.rkestate"
    printf '%s' "$serial" >"$dir/serial.out"
    give_file serial "$dir/serial.out"
  fi
}`;
