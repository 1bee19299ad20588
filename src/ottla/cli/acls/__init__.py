"""`ottla acls <verb>`: who may, and who may not, do what with which resource.

- `options` the options that all of them share, and the rules that are meant by them
- `list`    the rules there are
- `add`     new ones
- `remove`  some of them, gone
"""
