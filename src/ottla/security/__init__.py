"""Who may do what.

- `acl`         rules about principals, operations and resources, and what follows from them (pure)
- `authorizer`  the rules that hold now, asked for every request
"""
