"""`ottla zookeeper <verb>`: ZooKeeper for development.

- `start`     runs servers in the foreground
- `ensemble`  their files and processes
"""
