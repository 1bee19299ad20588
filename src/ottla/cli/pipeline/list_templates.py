"""`ottla pipeline list-templates`: files to begin with."""

from __future__ import annotations

from ottla.cli.console import Table, show
from ottla.cli.options import AsJson
from ottla.spark.pipelines import templates


def list_templates(*, as_json: AsJson = False) -> int:
    """Show the templates that `ottla pipeline new` writes.

    Examples:
      ottla pipeline list-templates
    """
    rows = [(name, templates.purpose(name)) for name in templates.names()]
    show(Table("templates", ("template", "what for"), rows), as_json=as_json)
    return 0
