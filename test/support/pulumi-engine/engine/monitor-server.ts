import * as grpc from '@grpc/grpc-js';
import type * as aliasProto from '@pulumi/pulumi/proto/alias_pb';
import { EngineService } from '@pulumi/pulumi/proto/engine_grpc_pb';
import * as engineProto from '@pulumi/pulumi/proto/engine_pb';
import { InvokeResponse } from '@pulumi/pulumi/proto/provider_pb';
import { ResourceMonitorService } from '@pulumi/pulumi/proto/resource_grpc_pb';
import * as proto from '@pulumi/pulumi/proto/resource_pb';
import { Empty } from 'google-protobuf/google/protobuf/empty_pb';
import { Struct } from 'google-protobuf/google/protobuf/struct_pb';
import { messageOf } from '../../../../local/assets/errors';
import type { Deployment } from './deployment';
import type { Recorder, Severity } from './recorder';
import { type Alias, type Registration, durationMs } from './registration';
import { valuesFromWire, valuesToWire, type Values } from './values';

/** What the SDK may use. The rest it refuses with a clear error, or does without. */
const features: ReadonlySet<string> = new Set(['secrets', 'aliasSpecs', 'deletedWith', 'resourceHooks', 'replaceWith']);
const severities: readonly Severity[] = ['debug', 'info', 'warning', 'error'];
const noLimit = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

/** The two services that a program talks to, on a port of this machine. */
export class MonitorServer {
  private readonly server = new grpc.Server(noLimit);

  private constructor(
    private readonly deployment: Deployment,
    private readonly recorder: Recorder,
  ) {
    this.server.addService(ResourceMonitorService, this.monitor());
    this.server.addService(EngineService, this.engine());
  }

  /** Starts to listen. Returns `host:port`. */
  static async start(deployment: Deployment, recorder: Recorder): Promise<{ server: MonitorServer; address: string }> {
    const server = new MonitorServer(deployment, recorder);
    const port = await new Promise<number>((resolve, reject) => {
      server.server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) => {
        if (error === null) resolve(bound);
        else reject(error);
      });
    });
    return { server, address: `127.0.0.1:${port}` };
  }

  /** Cuts every connection. */
  stop(): void {
    this.server.forceShutdown();
  }

  private monitor(): grpc.UntypedServiceImplementation {
    const { deployment } = this;
    return {
      supportsFeature: unary((request: proto.SupportsFeatureRequest) =>
        new proto.SupportsFeatureResponse().setHassupport(features.has(request.getId())),
      ),
      registerResource: unary(async (request: proto.RegisterResourceRequest) => {
        const registered = await deployment.register(registration(request));
        return new proto.RegisterResourceResponse()
          .setUrn(registered.urn)
          .setId(registered.id)
          .setObject(struct(registered.outputs));
      }),
      registerResourceOutputs: unary((request: proto.RegisterResourceOutputsRequest) => {
        deployment.registerOutputs(request.getUrn(), values(request.getOutputs()));
        return new Empty();
      }),
      readResource: unary(async (request: proto.ReadResourceRequest) => {
        const read = await deployment.read({
          type: request.getType(),
          name: request.getName(),
          parent: request.getParent(),
          id: request.getId(),
          inputs: values(request.getProperties()),
          provider: request.getProvider(),
          version: request.getVersion(),
          dependencies: request.getDependenciesList(),
        });
        return new proto.ReadResourceResponse().setUrn(read.urn).setProperties(struct(read.outputs));
      }),
      invoke: unary(async (request: proto.ResourceInvokeRequest) => {
        const inputs = values(request.getArgs());
        const outputs = await deployment.invoke(request.getTok(), inputs, request.getProvider(), request.getVersion());
        return new InvokeResponse().setReturn(struct(outputs));
      }),
      registerResourceHook: unary((request: proto.RegisterResourceHookRequest) => {
        const callback = request.getCallback();
        deployment.registerHook(request.getName(), {
          ...{ target: callback?.getTarget() ?? '', token: callback?.getToken() ?? '' },
          onDryRun: request.getOnDryRun(),
        });
        return new Empty();
      }),
      signalAndWaitForShutdown: unary(() => new Empty()),
    };
  }

  private engine(): grpc.UntypedServiceImplementation {
    let root = '';
    return {
      log: unary((request: engineProto.LogRequest) => {
        const severity = severities[request.getSeverity()] ?? 'info';
        if (severity !== 'debug') this.recorder.addLog(severity, request.getMessage(), request.getUrn());
        return new Empty();
      }),
      setRootResource: unary((request: engineProto.SetRootResourceRequest) => {
        root = request.getUrn();
        return new engineProto.SetRootResourceResponse();
      }),
      getRootResource: unary(() => new engineProto.GetRootResourceResponse().setUrn(root)),
      requirePulumiVersion: unary(() => new engineProto.RequirePulumiVersionResponse()),
    };
  }
}

/** A failure is told as the real engine tells it, whose monitor is gone by then; the SDK ends its work in silence. */
function unary<Q, A>(handle: (request: Q) => A | Promise<A>): grpc.handleUnaryCall<Q, A> {
  return (call, callback) => {
    Promise.resolve()
      .then(() => handle(call.request))
      .then(
        (answer) => callback(null, answer),
        (error: unknown) => callback({ code: grpc.status.UNAVAILABLE, details: messageOf(error) }),
      );
  };
}

function values(object: Struct | undefined): Values {
  return object === undefined ? {} : valuesFromWire(object.toJavaScript());
}

function struct(from: Values): Struct {
  return Struct.fromJavaScript(valuesToWire(from));
}

function registration(request: proto.RegisterResourceRequest): Registration {
  const timeouts = request.getCustomtimeouts();
  const create = durationMs(timeouts?.getCreate() ?? '');
  const update = durationMs(timeouts?.getUpdate() ?? '');
  const properties = [...request.getPropertydependenciesMap().entries()];
  return {
    type: request.getType(),
    name: request.getName(),
    parent: request.getParent(),
    custom: request.getCustom(),
    inputs: values(request.getObject()),
    provider: request.getProvider(),
    version: request.getVersion(),
    dependencies: request.getDependenciesList(),
    propertyDependencies: Object.fromEntries(properties.map(([key, urns]) => [key, urns.getUrnsList()])),
    protect: request.hasProtect() ? request.getProtect() : undefined,
    retainOnDelete: request.hasRetainondelete() ? request.getRetainondelete() : undefined,
    deleteBeforeReplace: request.getDeletebeforereplacedefined() ? request.getDeletebeforereplace() : undefined,
    ignoreChanges: request.getIgnorechangesList(),
    replaceOnChanges: request.getReplaceonchangesList(),
    additionalSecretOutputs: request.getAdditionalsecretoutputsList(),
    aliases: [...request.getAliasesList().map(alias), ...request.getAliasurnsList().map((urn) => ({ urn }))],
    importId: request.getImportid(),
    deletedWith: request.getDeletedwith(),
    replaceWith: request.getReplaceWithList(),
    beforeCreate: request.getHooks()?.getBeforeCreateList() ?? [],
    timeouts: { ...(create === undefined ? {} : { create }), ...(update === undefined ? {} : { update }) },
  };
}

function alias(from: aliasProto.Alias): Alias {
  const spec = from.getSpec();
  if (spec === undefined) return { urn: from.getUrn() };
  const given = (key: string, value: string): Record<string, string> => (value === '' ? {} : { [key]: value });
  return {
    ...given('name', spec.getName()),
    ...given('type', spec.getType()),
    ...given('stack', spec.getStack()),
    ...given('project', spec.getProject()),
    ...given('parent', spec.getParenturn()),
    noParent: spec.hasNoparent() && spec.getNoparent(),
  };
}
