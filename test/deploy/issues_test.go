// SPDX-License-Identifier: Apache-2.0

package deploy

// issues are the rights of a controller that renews the tokens of one reader: those of no other account.
const issues = `    resources: [serviceaccounts/token]
    resourceNames:
      - clusterset-member-a.eu
    verbs: [create]
  # RBAC cannot restrict by name what is created.
  - apiGroups: [""]
    resources: [secrets]
    verbs: [create]
  # OwnerReferencesPermissionEnforcement, as on OpenShift, requires delete for objects with owners.
  - apiGroups: [""]
    resources: [secrets]
    resourceNames:
      - clusterset-member-a.eu-token
    verbs: [delete]
`
