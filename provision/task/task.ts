import type { ObjectKeyRef } from '../../constructs/kind/reads';

/**
 * Where a value comes from that a script reads from its stdin. Data only: no value of a secret ever stands in a plan. Whoever carries a
 * task out (the provisioner, a Pulumi component) looks the values up and writes them to the stdin of the script, nowhere else.
 */
export type ValueSource =
  | {
      /** One value of a Secret. In Pulumi: of the component's `secrets`. */
      readonly secret: ObjectKeyRef;
    }
  | {
      /** What an earlier task of the same cluster gave as an output of that name, for example `token`. */
      readonly output: OutputRef;
    }
  | {
      /** A file below the directory that the provisioner is configured with. */
      readonly file: string;
    }
  | {
      /** A text that is no secret. */
      readonly text: string;
    }
  | {
      /**
       * A text put together of texts that stand in it as they are, and values that stand in it as JSON strings, quotes included. Since
       * YAML reads JSON, this is how a password gets into a configuration file whatever characters it has.
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

/** A value that a script reads from its stdin. */
export interface StdinValue {
  /** Name of the shell variable that the script gets it in: `[a-z][a-z0-9_]*`. */
  readonly name: string;
  readonly from: ValueSource;
  /**
   * A value whose change alone is no reason to run again, such as an SSH key. It is not part of the marker.
   * @default false
   */
  readonly volatile?: boolean;
}

/** A machine, and how it is reached. Plain data, the same for both transports. */
export interface Machine {
  /** Host name or IP address. */
  readonly address: string;
  /** @default 22 */
  readonly port?: number;
  /** @default 'root' */
  readonly user?: string;
  /** Scripts run as that user, not as root. @default false */
  readonly asUser?: boolean;
  /** Public host key, `type base64`. Without it the transport must be told explicitly to trust what it meets. */
  readonly hostKey?: string;
  /** A machine to go through. */
  readonly bastion?: Omit<Machine, 'bastion'>;
  /** Private key of the machine. */
  readonly sshKey?: ObjectKeyRef;
}

/**
 * A piece of the desired state of a cluster that one script brings about on one machine, and another takes away: a Pulumi Command, or a step
 * of the provisioner.
 *
 * A change of the plan is carried out as Pulumi does it: in the order of `after`, tasks whose script or stdin changed run `apply` again; then
 * those that are gone from the plan run `remove`, each before what it came after. Nothing changed = nothing run.
 *
 * Guarantees: `apply` and `remove` are self-contained POSIX shell without secrets, and can be repeated: they look first, and what is done
 * they find done. Their stdin is one line a value: the name, a space, the value in base64. The last line of their stdout is an
 * {@link ScriptResult}. They exit with 0 exactly when the answer's `ok` is true.
 */
export interface Task {
  /** Unique within the plan, and stable: `<address>/<what>`, or `<what>` where no machine is meant. Part of the marker's name. */
  readonly id: string;
  /** For people: what it does. */
  readonly description: string;
  /** @default the machine that the plan is carried out from */
  readonly machine?: Machine;
  /** Ids of the tasks that must have succeeded before. They stand before this one in the plan. */
  readonly after: readonly string[];
  readonly apply: string;
  /** @default nothing is to be taken away */
  readonly remove?: string;
  /** @default nothing */
  readonly stdin?: readonly StdinValue[];
  /**
   * Whether `remove` reads `stdin` too. What it does not need may be gone by then, such as the Secret with a registry's password.
   * @default true
   */
  readonly removeReadsStdin?: boolean;
  /** Names of what `apply` answers with. All of it is treated as secret. @default none */
  readonly outputs?: readonly string[];
  /** How long one run may take. */
  readonly timeoutSeconds: number;
}

/** The last line of a script's stdout, as JSON. It holds no secret but in `outputs`, which nobody logs. */
export interface ScriptResult {
  readonly ok: boolean;
  /** Whether anything was done on the machine. */
  readonly changed: boolean;
  /** CamelCase, why not ok: `PreflightFailed`, `DiskFull`, `Locked`. @default none */
  readonly reason?: string;
  /** For people. With `ok: false`: what, where, why, and what to do. */
  readonly message?: string;
  /** Values in base64, by name. Also given by a run that failed halfway, as far as they exist. */
  readonly outputs?: Readonly<Record<string, string>>;
}
