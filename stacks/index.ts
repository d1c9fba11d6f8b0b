import * as pulumi from '@pulumi/pulumi';
import { InvalidObjectError } from '../constructs/kube/errors';
import { InvalidPropsError } from '../constructs/operator';
import { BridgeError } from './bridge';
import { ConfigError } from './config/parse';
import { program, readConfig, type ProgramOutputs } from './program';

/** Errors whose message is for the user; Pulumi shows it without a stack trace. */
const userErrors = [ConfigError, InvalidObjectError, InvalidPropsError, BridgeError];

function run(): ProgramOutputs {
  try {
    return program(readConfig());
  } catch (error) {
    if (userErrors.some((type) => error instanceof type)) throw new pulumi.RunError((error as Error).message);
    throw error;
  }
}

const stackOutputs = run();

// Exported as a whole, because the configuration decides which outputs there are.
export = stackOutputs;
