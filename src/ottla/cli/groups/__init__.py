"""`ottla groups <verb>`: consumer groups, their offsets and members.

- `list`           their names and states
- `describe`       how far each partition is behind
- `members`        who is in a group; putting members out
- `reset_offsets`  moves where a group goes on
- `delete`         forgets groups
- `lag`            committed offsets beside ends: what `describe` shows
- `plan`           where offsets would be moved (pure)
"""
