import type { StdinValue } from '../task/task';
import { RESULT_FUNCTIONS, MASK_FUNCTION, RUN_FUNCTIONS, SETUP, EXIT_TRAP } from './functions';

/** Where the scripts keep what they know of a machine, a folder a cluster. */
export const STATE_DIR = '/var/lib/kindred';

/** What a script needs to know besides what it does. */
export interface ScriptProps {
  /** Name of the cluster. */
  readonly cluster: string;
  /** Id of the task. */
  readonly id: string;
  /** What is being done, for error messages: `installing RKE2`. */
  readonly doing: string;
  /** Values that it reads. A script that takes something away does without them. @default none */
  readonly stdin?: readonly StdinValue[];
  /**
   * What decides, besides the stdin, whether there is something to do: goes into the marker. No secret.
   * @default no marker: the script looks each time
   */
  readonly generation?: string;
  /** How long to wait for another run on the machine, in seconds. @default no lock is taken */
  readonly lockSeconds?: number;
  /** What the lock is on. @default all that is done to the machine itself for the cluster */
  readonly lock?: string;
  /** Further folders to look at when a disk may be full. @default that of the state */
  readonly disks?: readonly string[];
  /** @default {@link STATE_DIR} */
  readonly stateFolder?: string;
}

/**
 * A self-contained script: sets up, reads stdin, opens the log, takes the lock, and then does what `body` says. The body ends with `finish` or
 * `die REASON MESSAGE`; whatever ends otherwise is answered for as `Failed` or `DiskFull`.
 *
 * For the body: `$state` (folder of the cluster), `$log`, `changed`, `note TEXT` (a warning), `give NAME VALUE` (an output), `run` and `detached`
 * (programs), `put PATH MODE` (a file, whole or not at all, from stdin), and with a generation `marked` and `mark`.
 */
export function buildScript(props: ScriptProps, body: readonly string[]): string {
  const state = `${props.stateFolder ?? STATE_DIR}/${props.cluster}`;
  return [
    `# ${props.id} of the cluster ${props.cluster}`,
    SETUP,
    `task=${shellQuote(props.id)}`,
    `doing=${shellQuote(props.doing)}`,
    `state=${shellQuote(state)}`,
    `disks=${shellQuote([state, ...(props.disks ?? [])].join(' '))}`,
    MASK_FUNCTION,
    RESULT_FUNCTIONS,
    EXIT_TRAP,
    RUN_FUNCTIONS,
    ...readStdin(props.stdin ?? []),
    OPEN_LOG,
    ...(props.lockSeconds === undefined ? [] : [takeLock(props.lock ?? 'lock', props.lockSeconds)]),
    ...(props.generation === undefined ? [] : [markerFunctions(props.generation, props.stdin ?? [])]),
    ...body,
    '',
  ].join('\n');
}

/** The file name of a task's marker and log. */
const FILE_NAME = '$(printf \'%s\' "$task" | tr / _)';

/** One log a task, begun anew by each run, so that it cannot fill a disk. */
const OPEN_LOG = `mkdir -p "$state/log" "$state/marker"
log="$state/log/${FILE_NAME}"
: >"$log"
exec >>"$log" 2>&1`;

/** The values that are asked for, each in a variable and, in base64, in another. What else stands on stdin is passed over. */
function readStdin(values: readonly StdinValue[]): readonly string[] {
  if (values.length === 0) return [];
  const cases = values.map(
    ({ name }) => `    ${name}) ${name}_base64=$value
      ${name}=$(printf '%s' "$value" | base64 -d; printf x)
      ${name}=\${${name}%x} ;;`,
  );
  const secret = values.map(({ name }) => `$${name}`).join('\n');
  return [
    values.map(({ name }) => `${name}=''; ${name}_base64=''`).join('\n'),
    'while read -r name value; do',
    '  case $name in',
    ...cases,
    '  esac',
    'done',
    `secrets="${secret}"`,
  ];
}

/** Ends the script unless all values are there. For scripts that cannot do without. */
export function requireStdin(values: readonly StdinValue[]): string {
  if (values.length === 0) return ':';
  const words = values.map(({ name }) => `${name}:$${name}_base64`).join(' ');
  return `for pair in ${words}; do
  if [ -z "\${pair#*:}" ]; then die Failed "$doing: the value \${pair%%:*} did not come in on stdin, or is empty"; fi
done`;
}

/**
 * The kernel frees the lock of whoever died. BusyBox' flock cannot wait for a time, so it is asked each second. What a killed run had started
 * keeps the lock until it ends, so two never work at once.
 */
function takeLock(name: string, seconds: number): string {
  return `if ! have flock; then die PreflightFailed "the program flock is missing on this machine: install util-linux"; fi
exec 9>>"$state/${name}"
waited=0
until flock -n 9; do
  if [ "$waited" -ge ${seconds} ]; then
    die Locked "another run has held $state/${name} for more than ${seconds} s ($(cat "$state/${name}.holder" 2>/dev/null || :)). Wait for it to end and run again"
  fi
  waited=$((waited + 1))
  sleep 1
done
printf 'process %s, task %s\\n' "$$" "$task" >"$state/${name}.holder"`;
}

/** What was done last by this task on this machine, as a hash that holds no secret one could read. */
function markerFunctions(generation: string, values: readonly StdinValue[]): string {
  const kept = values.filter(({ volatile = false }) => !volatile);
  const parts = kept.map(({ name }) => ` '${name}' "$${name}_base64"`).join('');
  return `marker="$state/marker/${FILE_NAME}"
fingerprint=$(printf '%s\\n' ${shellQuote(generation)}${parts} | sha256sum | cut -d ' ' -f 1)
marked() { [ "$(cat "$marker" 2>/dev/null || :)" = "$fingerprint" ]; }
mark() {
  printf '%s\\n' "$fingerprint" >"$marker.new"
  mv -f "$marker.new" "$marker"
}`;
}

/** A text as one word of a POSIX shell, whatever it holds. */
export function shellQuote(text: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Words of a command, each quoted. */
export function shellCommand(...words: readonly string[]): string {
  return words.map(shellQuote).join(' ');
}
