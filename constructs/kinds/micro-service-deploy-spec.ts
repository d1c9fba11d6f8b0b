import { z } from 'zod';
import { cel } from '../core/cel';
import { compareQuantities, quantity } from '../core/quantity';
import { dnsLabel, dnsSubdomain, dns1035Label, immutable, withRule } from '../core/fields';
import { imageField, replicasField } from './common-fields';

const amounts = () =>
  z.object({
    cpu: quantity().optional().describe('Processor time, in cores: 500m is half a core.'),
    memory: quantity().optional().describe('Memory, in bytes: 512Mi.'),
  });

const notAbove = (resource: 'cpu' | 'memory') =>
  cel(
    `!has(self.requests) || !has(self.limits) || !has(self.requests.${resource}) || !has(self.limits.${resource}) || ` +
      `quantity(string(self.requests.${resource})).compareTo(quantity(string(self.limits.${resource}))) <= 0`,
    `requests.${resource} must not exceed limits.${resource}`,
  );

const requirements = z.object({
  requests: amounts().optional().describe('What each pod is guaranteed.'),
  limits: amounts().optional().describe('What each pod may use at most.'),
});

const within = (resource: 'cpu' | 'memory') => (value: z.output<typeof requirements>) => {
  const request = value.requests?.[resource];
  const limit = value.limits?.[resource];
  return request === undefined || limit === undefined || compareQuantities(request, limit) <= 0;
};

const resourceRequirements = withRule(
  withRule(requirements, notAbove('cpu'), within('cpu')),
  notAbove('memory'),
  within('memory'),
);

/** The spec of a MicroServiceDeploy. */
export const microServiceDeploySpec = withRule(
  z.object({
    msName: immutable(dns1035Label()).describe(
      'Name of the service that all its instances stand behind. Cannot be changed: the pods are selected by it.',
    ),
    fullName: dns1035Label().describe('Name of this instance. A new name replaces its Deployment.'),
    version: z
      .string()
      .max(63)
      .regex(/^[A-Za-z0-9]([A-Za-z0-9_-]|[.][A-Za-z0-9_-])*[.]?$/)
      .describe(
        'Version of this instance; part of the path of its logs. Letters, digits, ".", "_" and "-", without "..".',
      ),
    path: dnsLabel().describe("Major version: the first label of the instance's host name."),
    image: imageField().describe('Container image of the service.'),
    replicas: replicasField().default(1).describe('Number of pods while neither autoscaling nor idle.'),
    autoscaling: z.boolean().default(false).describe('Let a HorizontalPodAutoscaler choose the number of pods.'),
    needAuth: z.boolean().default(false).describe("Callers need the tenant's basic authentication."),
    idle: z.boolean().default(false).describe('Scale to zero.'),
    config: z.string().max(524288).optional().describe('Text of ms.properties, mounted at /home/admin/conf.'),
    configSecretRef: z
      .object({
        name: dnsSubdomain().describe('Name of the Secret, in the same namespace.'),
        key: z
          .string()
          .max(253)
          .regex(/^[-._a-zA-Z0-9]+$/)
          .describe('Key within the Secret.'),
      })
      .optional()
      .describe('Take the text of ms.properties from a Secret instead.'),
    creationTimestamp: z
      .string()
      .max(32)
      .regex(/^[0-9]+$/)
      .optional()
      .describe('Milliseconds since 1970, as digits. A new value restarts the pods.'),
    resourceRequirements: resourceRequirements.optional().describe('What each pod requests and may use.'),
  }),
  cel('!(has(self.config) && has(self.configSecretRef))', 'give at most one of config and configSecretRef', {
    fieldPath: '.configSecretRef',
  }),
  (spec) => spec.config === undefined || spec.configSecretRef === undefined,
);
