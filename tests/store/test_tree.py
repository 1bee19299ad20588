"""The tree and drafts over it, for any history of writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.store import paths
from ottla.store.port import Check, Create, Delete, NoNode, Op, Set, StoreError
from ottla.store.tree import ROOT, Draft, Tree

NAMES = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/a/x/deep", "/b/x"])
VERSIONS = st.sampled_from([-1, -1, 0, 1])
OPS = st.one_of(
    st.builds(Create, NAMES, st.binary(max_size=2), st.booleans(), st.booleans()),
    st.builds(Set, NAMES, st.binary(max_size=2), VERSIONS),
    st.builds(Delete, NAMES, VERSIONS),
    st.builds(Check, NAMES, VERSIONS),
)
HISTORY = st.lists(st.lists(OPS, min_size=1, max_size=4), max_size=25)


@given(HISTORY)
def test_a_draft_of_many_writes_merges_into_what_each_write_alone_would_make(
    history: list[list[Op]],
) -> None:
    one_by_one, together = Tree(), Tree()
    batch = Draft(together)
    for ops in history:
        draft = Draft(one_by_one)
        assert _outcome(draft, ops) == _outcome(batch, ops)
        one_by_one.merge(draft)
    together.merge(batch)
    assert _all(one_by_one) == _all(together)
    assert one_by_one.zxid == together.zxid


@given(HISTORY)
def test_every_node_has_a_parent_that_lists_it(history: list[list[Op]]) -> None:
    tree = Tree()
    for ops in history:
        draft = Draft(tree)
        _outcome(draft, ops)
        tree.merge(draft)
        for path in _all(tree):
            if path != ROOT:
                assert paths.name(path) in tree.children(paths.parent(path))


@given(HISTORY, st.lists(OPS, min_size=1, max_size=4))
def test_a_refused_multi_changes_nothing(history: list[list[Op]], ops: list[Op]) -> None:
    tree = Tree()
    for earlier in history:
        draft = Draft(tree)
        _outcome(draft, earlier)
        tree.merge(draft)
    before, zxid = _all(tree), tree.zxid
    draft = Draft(tree)
    try:
        draft.apply([*ops, Check("/never", 0)], session=1)
    except StoreError:
        tree.merge(draft)
        assert (_all(tree), tree.zxid) == (before, zxid)
        assert not draft.changed
    else:
        pytest.fail("a check of a node that never exists succeeded")


def test_a_node_may_come_and_go_within_one_draft() -> None:
    tree = Tree()
    draft = Draft(tree)
    draft.apply([Create("/a"), Create("/a/b"), Delete("/a/b"), Delete("/a")], session=1)
    tree.merge(draft)
    assert tree.children(ROOT) == []
    with pytest.raises(NoNode):
        tree.children("/a")


def test_the_ephemerals_of_a_session_are_listed_deepest_first() -> None:
    tree = Tree()
    draft = Draft(tree)
    draft.apply([Create("/a"), Create("/a/x", ephemeral=True)], session=7)
    draft.apply([Create("/b", ephemeral=True), Create("/c", ephemeral=True)], session=8)
    tree.merge(draft)
    assert tree.owned_by(7) == ["/a/x"]
    assert tree.owned_by(8) == ["/c", "/b"]


def test_a_path_that_is_none_is_a_mistake_of_ours() -> None:
    for path in ("a", "/a/", "//a", "/a/../b", "/"):
        with pytest.raises(AssertionError):
            Draft(Tree()).apply([Create(path)], session=1)


def _outcome(draft: Draft, ops: list[Op]) -> object:
    try:
        return draft.apply(ops, session=1)
    except StoreError as refusal:
        return type(refusal), refusal.at


def _all(tree: Tree, under: str = ROOT) -> dict[str, object]:
    entries: dict[str, object] = {under: tree.find(under)}
    for name in tree.children(under):
        entries |= _all(tree, f"{under.rstrip('/')}/{name}")
    return entries
