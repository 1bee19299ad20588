"""`ottla quotas <verb>`: how much users, client ids and IP addresses may use.

- `commands`  `list`, `set`, `remove`, and the options that name an entity
"""
