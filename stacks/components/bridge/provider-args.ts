/**
 * Arguments for a `kubernetes.Provider` under which ConfigMaps and Secrets are changed in place, as the bridge means it. Without them the provider
 * deletes one whose content changes and creates it anew, under the same name, so that it is missing for a moment.
 * Source: pulumi-kubernetes, provider arguments of these names; what is `immutable` is replaced anyway.
 */
export const mutableContent = { enableConfigMapMutable: true, enableSecretMutable: true } as const;
