"""Steps in Python: a function of a file beside the pipeline, from DataFrames to a DataFrame.

Owns: how such a file is loaded, how its code reaches the executors, and the errors that name file,
function and line. Never: changes what the function returns.

    def clean(views: DataFrame) -> DataFrame:          steps.py
        return views.groupBy("user").applyInPandas(sessions, "user STRING, n INT")

Functions and classes of the file, and of the modules beside it that it imports, are pickled by
value: executors need neither the file nor its folder. A file is loaded under a name made of its
path, so two pipelines of one process may each have a `steps.py`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING, cast

from ottla.model.errors import UserError
from ottla.spark.pipelines.spec import PythonStep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def call(step: PythonStep, frames: Sequence[DataFrame]) -> DataFrame:
    """What the step's function makes of the views; UserError if it fails or is not one."""
    from pyspark.sql import DataFrame

    where = f"step {step.name}: python: {step.place}"
    function = _function(step, load(step.path, where), where)
    try:
        inspect.signature(function).bind(*frames, **step.arguments)
    except TypeError as error:
        given = ", ".join((*step.sources, *(f"{name}=…" for name in step.arguments)))
        raise UserError(
            f"{where}{inspect.signature(function)}: {error}; the step calls it with ({given})"
        ) from None
    try:
        with _importing_from(step.path.parent):
            result = function(*frames, **step.arguments)
    except Exception as error:
        raise UserError(f"{where}{_line(error, step.path)}: {_first_line(error)}") from error
    if not isinstance(result, DataFrame):
        missing = " (is a return missing?)" if result is None else ""
        raise UserError(f"{where}: returned {type(result).__name__}{missing}; expected a DataFrame")
    return result


def load(path: Path, where: str) -> ModuleType:
    """The file as a module whose code is pickled by value."""
    from pyspark.cloudpickle import register_pickle_by_value

    name = f"{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look a class's module up
    with _importing_from(path.parent):
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise UserError(f"{where}{_line(error, path)}: {_first_line(error)}") from error
    register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Imports find the modules of a folder; those are forgotten at the end.

    The next load sees what has changed, and modules of the same name in another folder."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if _is_beside(sys.modules[name], folder):
                del sys.modules[name]  # what cannot be imported is pickled by value


def _is_beside(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not Path(file).is_relative_to(folder):
        return False
    return "site-packages" not in Path(file).parts


def _function(step: PythonStep, module: ModuleType, where: str) -> Callable[..., DataFrame]:
    function = getattr(module, step.function, None)
    if callable(function):
        return cast("Callable[..., DataFrame]", function)
    if function is not None:
        raise UserError(f"{where}: {type(function).__name__}; expected a function")
    names = [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    near = get_close_matches(step.function, names, n=1)
    advice = f"; did you mean {near[0]}?" if near else ""
    listing = ", ".join(names) or "none"
    raise UserError(f"{where}: no such function{advice} (functions of {step.path}: {listing})")


def _line(error: BaseException, path: Path) -> str:
    """Where in the file it happened."""
    lines = [
        frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    return f", line {lines[-1]}" if lines else ""


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
