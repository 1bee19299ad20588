"""What is wrong with a cluster, and what to do: `ottla doctor` and `ottla cluster health`.

- `facts`   what the checks look at, gathered over the wire
- `checks`  facts to findings (pure)
"""
