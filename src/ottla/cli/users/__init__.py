"""`ottla users`: SCRAM credentials.

- `commands`  `list`, `add`, `remove`
- `offline`   credentials of a broker that does not run
"""
