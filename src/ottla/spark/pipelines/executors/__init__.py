"""Executors on other machines.

- `environment_archive` what they need of Ottla, as one archive
"""
