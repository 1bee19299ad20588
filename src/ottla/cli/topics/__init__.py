"""`ottla topics <verb>`: create, list, describe, alter and delete topics.

- `create`    new topics
- `list`      their names
- `describe`  partitions with leaders, replicas and who is in sync
- `alter`     more partitions, other settings
- `delete`    topics with all their records
"""
