"""What is wrong with a cluster, and what to do: `ottla doctor` and `ottla cluster health`.

- `facts`   what the checks look at, gathered over the wire
- `clients` what connected clients speak, read from the brokers' metrics
- `checks`  facts to findings (pure)
"""
