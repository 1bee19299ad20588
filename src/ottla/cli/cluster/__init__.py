"""`ottla cluster <verb>`: the cluster as a whole.

- `show`            `describe`: brokers, controller, features; `health`: whether all is well
- `local_commands`  `start`, `stop`, `status`: a development cluster on this machine
- `local_cluster`   its folder and its processes
"""
