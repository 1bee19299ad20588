from __future__ import annotations

from pathlib import Path

from tools import tidy_tree
from tools.tidy import Module


def module(path: str, source: str = "") -> Module:
    return Module(f"src/ottla/{path}", source)


def test_a_file_that_declares_an_api_is_listed() -> None:
    listing = module("api/__init__.py", "from ottla.api import fetch\nAPIS = (fetch.API,)")
    fetch = module("api/fetch.py", "API = Api()")
    forgotten = module("api/produce.py", "API: Final = Api()")
    dispatch = module("api/dispatch.py", "x = 1")
    faults = list(tidy_tree.unlisted_apis([listing, fetch, forgotten, dispatch]))
    assert [fault.path for fault in faults] == ["src/ottla/api/produce.py"]


def test_a_module_nobody_imports_is_a_fault() -> None:
    used = module("log/used.py")
    named = module("cli/named.py")
    alone = module("log/alone.py", "import ottla.log.alone")
    user = module("broker/app.py", "from ottla.log import used\nTARGET = 'ottla.cli.named:run'")
    modules = [used, named, alone, user]
    its_test = Module("tests/log/test_alone.py", "from ottla.log import alone")
    faults = tidy_tree.never_imported(modules, [*modules, its_test], "ottla.broker.app:main")
    assert [fault.path for fault in faults] == ["src/ottla/log/alone.py"]


def test_a_module_that_a_simulation_is_built_on_is_in_use() -> None:
    memory = module("store/memory.py")
    simulation = Module("tests/sim/world.py", "from ottla.store.memory import MemoryStore")
    assert not list(tidy_tree.never_imported([memory], [memory, simulation], ""))


def test_a_package_maps_its_modules() -> None:
    modules = [
        module("log/__init__.py", '"""The log.\n\n- `segment`  one file\n"""'),
        module("log/segment.py"),
        module("log/stray.py"),
        module("api/__init__.py", '"""APIs."""'),
        module("api/fetch.py", "API = 1"),
    ]
    faults = list(tidy_tree.unmapped(modules))
    assert [fault.path for fault in faults] == ["src/ottla/log/stray.py"]


def test_relative_links_lead_somewhere(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "there.md").write_text("[up](../README.md#part) [gone](gone.md)")
    (tmp_path / "README.md").write_text(
        "[a](docs/there.md) [b](https://example.org)\n```\n[c](in-code.md)\n```\n"
    )
    faults = list(tidy_tree.broken_links(tmp_path))
    assert [(fault.path, fault.text) for fault in faults] == [
        ("docs/there.md", "gone.md does not exist")
    ]


def test_paths_of_the_architecture_page_exist(tmp_path: Path) -> None:
    (tmp_path / "src" / "ottla" / "log").mkdir(parents=True)
    (tmp_path / "src" / "ottla" / "log" / "log.py").write_text("")
    (tmp_path / "ARCHITECTURE.md").write_text("`log/log.py`, `log/`, `acks=all`\n`log/gone.py`\n")
    [fault] = tidy_tree.broken_paths(tmp_path)
    assert (fault.line, fault.text) == (2, "log/gone.py does not exist")


def test_a_page_of_measurements_with_too_many_words_is_a_fault(tmp_path: Path) -> None:
    pages = [tmp_path / path for path in tidy_tree.WORDS]
    pages[0].parent.mkdir()
    most = tidy_tree.WORDS["docs/benchmarks.md"]
    for page in pages:
        page.write_text("word\n" * most)
    assert not list(tidy_tree.long_documents(tmp_path))
    pages[0].write_text("word " * (most + 1))
    [fault] = tidy_tree.long_documents(tmp_path)
    assert (fault.path, fault.rule) == ("docs/benchmarks.md", "document-length")
    assert f"{most + 1} words" in fault.text
    pages[1].unlink()
    assert len(list(tidy_tree.long_documents(tmp_path))) == 1
