export { AccessRoles, editorRules, viewerRules, type AccessRolesProps } from './access-roles';
export { extraRulesProblems, type KindRule, type NamespacedRules, type PolicyRule, type Verb } from './policy-rule';
export {
  LeaderElectionRole,
  leaderElectionRules,
  OperatorRole,
  operatorRules,
  type LeaderElectionRoleProps,
  type OperatorRoleProps,
  type OperatorRulesOptions,
} from './operator-role';
export type { ServiceAccountRef } from './bound-role';
