import type { AnyKind } from '../kind/kind';

/**
 * The health check of a kind for Argo CD, in Lua. Argo CD does not follow kstatus by itself; this check gives
 * the same result as kstatus, from the conditions that every kind has. Source: Argo CD's "Resource Health",
 * custom checks.
 *
 * Suspended: a user paused the object. Degraded: it is `Stalled`. Progressing: the status is of an older
 * generation, or it is not ready yet.
 */
export const ARGO_CD_HEALTH_LUA = `local hs = { status = "Progressing", message = "Waiting for the operator." }
if obj.metadata.deletionTimestamp ~= nil then
  hs.message = "Being deleted."
  return hs
end
if obj.metadata.annotations ~= nil and obj.metadata.annotations["kindred.dev/paused"] == "true" then
  return { status = "Suspended", message = "Reconciling is paused." }
end
if obj.status == nil or obj.status.conditions == nil then
  return hs
end
if obj.status.observedGeneration ~= nil and obj.status.observedGeneration < obj.metadata.generation then
  return hs
end
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Stalled" and condition.status == "True" then
    return { status = "Degraded", message = condition.message }
  end
end
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Ready" then
    hs.message = condition.message
    if condition.status == "True" then
      hs.status = "Healthy"
    end
  end
end
return hs
`;

/** The entries of Argo CD's ConfigMap `argocd-cm` with the health checks of kinds, by key. */
export function argoCdHealth(kinds: readonly AnyKind[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    kinds.map(({ group, kind }) => [`resource.customizations.health.${group}_${kind}`, ARGO_CD_HEALTH_LUA]),
  );
}
