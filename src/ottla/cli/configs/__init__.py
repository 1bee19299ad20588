"""`ottla configs <verb>`: settings of topics, brokers, groups and loggers.

- `resource`  what KIND and NAME mean
- `describe`  the settings, and where each value comes from
- `set`       gives settings a value
- `delete`    lets them go back to their default
"""
