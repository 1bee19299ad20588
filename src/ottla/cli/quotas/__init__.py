"""`ottla quotas <verb>`: how much users, client ids and IP addresses may use.

- `options`   the options that name an entity
- `commands`  `list`, `set`, `remove`
"""
