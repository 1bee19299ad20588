"""`ottla groups <verb>`: consumer groups, their offsets and members.

- `describe`       how far each partition is behind
- `reset_offsets`  moves where a group goes on
- `commands`       `list`: names and states; `members`: who is in a group; `delete`
- `lag`            committed offsets beside ends: what `describe` shows
- `plan`           where offsets would be moved (pure)
"""
