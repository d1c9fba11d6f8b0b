import type { ObjectKeyRef } from '../../constructs/kind/reads';

/**
 * A part of the desired state of a cluster that one script creates on one machine, and another removes: a
 * Pulumi Command, or a step of the provisioner.
 *
 * A change of the plan is executed as Pulumi does it: in the order of `after`, tasks whose script or stdin
 * changed run `apply` again; then those that left the plan run `remove`, each before the tasks in its
 * `after`. Nothing changed = nothing run.
 *
 * Guarantees: `apply` and `remove` are self-contained POSIX shell without secrets, and idempotent: they check
 * first, and do only what is missing. Their stdin is one line per value: the name, a space, the value in
 * base64. The last line of their stdout is a {@link ScriptResult}. They exit with 0 exactly when its `ok` is
 * true.
 */
export interface Task {
  /**
   * Unique within the plan, and stable: `<address>/<what>`, or `<what>` for the whole cluster. Part of the
   * marker's name.
   */
  readonly id: string;
  /** What it does, for people. */
  readonly description: string;
  /** @default the machine that executes the plan */
  readonly machine?: Machine;
  /** Ids of the tasks that must have succeeded before. They precede this one in the plan. */
  readonly after: readonly string[];
  readonly apply: string;
  /** @default there is nothing to remove */
  readonly remove?: string;
  /** @default nothing */
  readonly stdin?: readonly StdinValue[];
  /**
   * Whether `remove` reads `stdin` too. Values that it does not need may no longer exist, such as the Secret
   * with a registry's password.
   * @default true
   */
  readonly removeReadsStdin?: boolean;
  /** Names of the outputs of `apply`, which are all treated as secret. @default none */
  readonly outputs?: readonly string[];
  /** How long one run may take, in seconds. */
  readonly timeoutSeconds: number;
}

/** The last line of a script's stdout, as JSON. Only `outputs` contain secrets, and they are never logged. */
export interface ScriptResult {
  readonly ok: boolean;
  /** Whether the script changed anything on the machine. */
  readonly changed: boolean;
  /** Why it failed, in CamelCase: `PreflightFailed`, `DiskFull`, `Locked`. @default none */
  readonly reason?: string;
  /** For people. With `ok: false`: what, where, why, and what to do. */
  readonly message?: string;
  /** Values in base64, by name. A run that failed halfway returns those that exist. */
  readonly outputs?: Readonly<Record<string, string>>;
}

/** A machine, and how to connect to it. Plain data, the same for both transports. */
export interface Machine {
  /** Host name or IP address. */
  readonly address: string;
  /** @default 22 */
  readonly port?: number;
  /** @default 'root' */
  readonly user?: string;
  /** Scripts run as that user, not as root. @default false */
  readonly asUser?: boolean;
  /**
   * Public host key, `type base64`. Without it the transport needs an explicit option to trust the first key.
   */
  readonly hostKey?: string;
  /** A machine to jump through. */
  readonly bastion?: Omit<Machine, 'bastion'>;
  /** Private key of the machine. */
  readonly sshKey?: ObjectKeyRef;
}

/** A value that a script reads from its stdin. */
export interface StdinValue {
  /** Name of the script's shell variable for it: `[a-z][a-z0-9_]*`. */
  readonly name: string;
  readonly from: ValueSource;
  /**
   * A change of this value alone is no reason to run again, as for an SSH key. It is not part of the marker.
   * @default false
   */
  readonly volatile?: boolean;
}

/**
 * Source of a value that a script reads from its stdin. A plan contains only the source, never the value of a
 * secret. The runner of the task (the provisioner, or a Pulumi component) looks the values up and writes them
 * to the script's stdin, nowhere else.
 */
export type ValueSource =
  | {
      /** One value of a Secret. In Pulumi: of the component's `secrets`. */
      readonly secret: ObjectKeyRef;
    }
  | {
      /** An output of an earlier task of the same cluster, for example `token`. */
      readonly output: OutputRef;
    }
  | {
      /** A file below the directory that the provisioner is configured with. */
      readonly file: string;
    }
  | {
      /** A text that is not secret. */
      readonly text: string;
    }
  | {
      /**
       * A text of literal parts and of values, which are inserted as JSON strings with their quotes. Since
       * YAML reads JSON, this puts a password into a configuration file whatever characters it has.
       */
      readonly template: readonly (string | ValueSource)[];
    };

/** An output of a task. */
export interface OutputRef {
  /** The task's id. */
  readonly task: string;
  /** The output's name. */
  readonly name: string;
}
