"""`ottla brokers <verb>`: the brokers of a cluster, and taking one out of it.

- `show`   `list`: brokers with leaders, replicas and disks; `describe`: one broker's partitions
- `move`   `drain`: leaders away from a broker; `decommission`: every replica, before it is removed
- `plans`  which partition goes where (pure)
"""
