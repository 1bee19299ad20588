"""The keys of a pipeline file, as pydantic models.

- `base`      a mapping of a file, types of its values, and the text of errors
- `sources`   what is read: topics, files, databases
- `formats`   how keys and values are written, and the schema registry
- `steps`     what becomes of the rows
- `sinks`     where they go
- `top`       a whole file, and its JSON Schema for editors
- `test_file` the tests of a pipeline

A model says what a file may contain; `yaml_file` has the values checked by it and turns them into
the plain values of `spec`, with which everything else works. Only these modules import pydantic.
"""
