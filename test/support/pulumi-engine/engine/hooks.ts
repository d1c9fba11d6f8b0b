import * as grpc from '@grpc/grpc-js';
import { CallbacksClient } from '@pulumi/pulumi/proto/callback_grpc_pb';
import { CallbackInvokeRequest } from '@pulumi/pulumi/proto/callback_pb';
import * as proto from '@pulumi/pulumi/proto/resource_pb';
import { Struct } from 'google-protobuf/google/protobuf/struct_pb';
import { valuesToWire, type Values } from './values';

/** A function of the program that the engine calls. */
interface Hook {
  /** Of the program's server: `host:port`. */
  readonly target: string;
  readonly token: string;
  readonly onDryRun: boolean;
}

/** What a hook is told of its resource. */
export interface HookedResource {
  readonly urn: string;
  readonly name: string;
  readonly type: string;
  readonly inputs: Values;
}

/** The hooks that a program has registered, by name. */
export class HookRegistry {
  private readonly hooks = new Map<string, Hook>();

  /** @throws Error for a name that is taken */
  add(name: string, hook: Hook): void {
    if (this.hooks.has(name)) throw new Error(`resource hook already registered for name "${name}"`);
    this.hooks.set(name, hook);
  }

  /**
   * Calls hooks of a resource one after the other, before it is created.
   *
   * @throws Error what the first one that fails has thrown
   */
  async beforeCreate(names: readonly string[], resource: HookedResource, preview: boolean): Promise<void> {
    for (const name of names) {
      const hook = this.hooks.get(name);
      if (hook === undefined) throw new Error(`hook "${name}" was not registered`);
      if (preview && !hook.onDryRun) continue;
      const problem = await call(hook, resource);
      if (problem !== '') throw new Error(`before hook "${name}" failed: ${problem}`);
    }
  }
}

/** Returns the hook's error, or an empty text. */
async function call({ target, token }: Hook, { urn, name, type, inputs }: HookedResource): Promise<string> {
  const request = new proto.ResourceHookRequest()
    .setUrn(urn)
    .setName(name)
    .setType(type)
    .setNewInputs(Struct.fromJavaScript(valuesToWire(inputs)));
  const client = new CallbacksClient(target, grpc.credentials.createInsecure());
  try {
    const message = new CallbackInvokeRequest().setToken(token).setRequest(request.serializeBinary());
    const response = await new Promise<Uint8Array>((resolve, reject) => {
      client.invoke(message, (error, answer) => {
        if (error === null) resolve(answer.getResponse_asU8());
        else reject(error);
      });
    });
    return proto.ResourceHookResponse.deserializeBinary(response).getError();
  } finally {
    client.close();
  }
}
