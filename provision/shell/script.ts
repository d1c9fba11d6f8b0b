import { singleQuote } from '../task/script-io';
import type { StdinValue } from '../task/task';
import { RESULT_FUNCTIONS, MASK_FUNCTION, RUN_FUNCTIONS, SETUP, EXIT_TRAP } from './functions';

/** Where scripts store state on a machine, one directory per cluster. */
export const STATE_DIR = '/var/lib/kindred';

/** Options of {@link buildScript}. */
export interface ScriptProps {
  /** Name of the cluster. */
  readonly cluster: string;
  /** Id of the task. */
  readonly id: string;
  /** What the script does, for error messages: `installing RKE2`. */
  readonly doing: string;
  /** Values that it reads from stdin. @default none */
  readonly stdin?: readonly StdinValue[];
  /**
   * What decides, besides the stdin, whether there is something to do: part of the marker. Not secret.
   * @default no marker: the script checks each time
   */
  readonly generation?: string;
  /** How long to wait for another run on the machine, in seconds. @default no lock is taken */
  readonly lockSeconds?: number;
  /** Name of the lock. @default `lock`, shared by all scripts that change the machine for the cluster */
  readonly lock?: string;
  /** Further directories to check when a disk may be full, besides that of the state. @default none */
  readonly disks?: readonly string[];
  /** @default {@link STATE_DIR} */
  readonly stateFolder?: string;
}

/**
 * A self-contained script: sets up, reads stdin, opens the log, takes the lock, and then runs `body`. The
 * body ends with `finish` or `die REASON MESSAGE`; any other end is reported as `Failed` or `DiskFull`.
 *
 * The body may use `$state` (directory of the cluster), `$log`, `changed`, `note TEXT` (a warning),
 * `give NAME VALUE` (an output), `run` and `detached` (programs), `put PATH MODE` (writes stdin to a file
 * atomically), and with a generation `marked` and `mark`.
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

/** Fails the script unless all values came in. */
export function requireStdin(values: readonly StdinValue[]): string {
  if (values.length === 0) return ':';
  const words = values.map(({ name }) => `${name}:$${name}_base64`).join(' ');
  return `for pair in ${words}; do
  if [ -z "\${pair#*:}" ]; then die Failed "$doing: the value \${pair%%:*} did not come in on stdin, or is empty"; fi
done`;
}

/** A text as one word of a POSIX shell, whatever it contains. */
export function shellQuote(text: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(text) ? text : singleQuote(text);
}

/** Words of a command, each quoted. */
export function shellCommand(...words: readonly string[]): string {
  return words.map(shellQuote).join(' ');
}

/** Reads each value into a variable, and its base64 into another. Other values on stdin are ignored. */
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

/** The file name of a task's marker and log. */
const FILE_NAME = '$(printf \'%s\' "$task" | tr / _)';

/** One log per task, truncated by each run, so that it cannot fill a disk. */
const OPEN_LOG = `mkdir -p "$state/log" "$state/marker"
log="$state/log/${FILE_NAME}"
: >"$log"
exec >>"$log" 2>&1`;

/**
 * The kernel releases the lock when a process dies. BusyBox' flock cannot wait with a timeout, so it is tried
 * each second. Programs that a killed run had started keep the lock until they end, so two runs never
 * overlap.
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

/** The marker: a hash of what this task last did on this machine, from which no secret can be read. */
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
