"""`ottla profile <verb>`: clusters by name, with the client properties they need.

- `profiles`  the file that keeps them
- `cluster`   which cluster a command means: options, environment, profiles
- `commands`  `add`, `list`, `remove`, `show`, `use`
"""
