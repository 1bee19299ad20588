"""`ottla acls <verb>`: who may, and who may not, do what with which resource.

- `commands`  `list`, `add`, `remove`
- `options`   the options that they share, and the rules that these describe
"""
