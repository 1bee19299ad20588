"""Authorization: ACLs and the authorizer that evaluates them; delegation tokens; client quotas.

- `acl`         ACLs: principals, operations, resources, and how they are evaluated (pure)
- `authorizer`  decides by the ACLs in force whether a request is allowed
- `password_encoder`  passwords in ZooKeeper, encrypted as Kafka 3.9 does it (pure)
- `delegation_tokens`  who may use, renew and expire tokens, and how they log in (pure)
- `quotas/`     client quotas: rates, entities, usage (pure)
"""
