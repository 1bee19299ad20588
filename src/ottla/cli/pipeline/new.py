"""`ottla pipeline new`: a template as a file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ottla.model.errors import UserError
from ottla.spark.pipelines import templates


def new(
    template: Annotated[str, typer.Argument(metavar="TEMPLATE", help="Name the template.")],
    to: Annotated[
        Path | None, typer.Argument(metavar="FILE.yaml", help="Write to this file.")
    ] = None,
) -> int:
    """Write a template to a file; default: TEMPLATE.yaml.

    Examples:
      ottla pipeline new views
      ottla pipeline new land orders-to-lake.yaml
    """
    text = templates.text(template)
    path = to or Path(f"{template}.yaml")
    try:
        with path.open("x") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{path} already exists; name another file") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    print(f"{path}: {templates.purpose(template)}")
    print(f"Change it, then: ottla pipeline validate {path} && ottla pipeline run {path}")
    return 0
