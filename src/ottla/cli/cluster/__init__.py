"""`ottla cluster <verb>`: the cluster as a whole.

- `describe`  its brokers, its controller, the features it has agreed on
- `health`    whether everything is as it should be; the exit code says it too
- `local_commands`  `start`, `stop`, `status`: a development cluster on this machine
- `local_cluster`   its folder and its processes
"""
