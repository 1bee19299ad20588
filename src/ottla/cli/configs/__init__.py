"""`ottla configs <verb>`: settings of topics, brokers, groups and loggers.

- `resource`  what KIND and NAME mean
- `commands`  `describe`: settings and where they come from; `set`; `delete`: back to defaults
"""
