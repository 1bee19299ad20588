"""`ottla users`: SCRAM credentials.

- `add`, `list`, `remove`  a file for each verb
- `offline`                credentials of a broker that does not run
"""
