"""`ottla quotas <verb>`: how much users, client ids and IP addresses may use.

- `options`  the options that name an entity
- `list`     the quotas there are
- `set`      new ones
- `remove`   some of them, removed
"""
