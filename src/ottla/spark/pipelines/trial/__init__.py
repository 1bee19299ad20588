"""A pipeline tried before it runs: nothing here writes to a topic, a table or a checkpoint.

- `fixtures`   parses a file of tests: records of the sources, and the rows that are expected
- `check`      `ottla pipeline test`: the steps on those records, without a broker
- `sample`     `ottla pipeline try`: the steps on a sample of the topics' records
- `read_plan`  `ottla pipeline plan`: what a run would read, and where it would begin
"""
