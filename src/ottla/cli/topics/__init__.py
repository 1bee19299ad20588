"""`ottla topics <verb>`: create, list, describe, alter and delete topics.

- `create`    new topics
- `show`      `list`: their names; `describe`: partitions with leaders, replicas, in-sync replicas
- `alter`     more partitions, other settings
- `delete`    topics with all their records
"""
