"""`ottla tokens`: delegation tokens.

- `commands`  create, list, renew, expire
"""
