"""Executors on other machines.

- `environment_archive` what they need of Ottla, as one archive
- `task_packages` which packages the tasks of a pipeline import; pure
"""
