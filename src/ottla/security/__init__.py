"""Authorization: ACLs and the authorizer that evaluates them; client quotas.

- `acl`         ACLs: principals, operations, resources, and how they are evaluated (pure)
- `authorizer`  decides by the ACLs in force whether a request is allowed
- `quotas/`     client quotas: rates, entities, usage (pure)
"""
