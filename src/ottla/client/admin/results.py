"""What came of each item of a request that named several.

Owns: the dict every such call of the admin returns. Never: hides a failure: a value is the result
or the exception that stands in its place, and the ways to read it say which is wanted.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")


class Outcomes(dict[Item, Result | Exception]):
    """By item: its result, or why there is none.

    >>> outcomes = admin.create_topics([NewTopic("orders")])
    >>> outcomes.failed       # {} when everything went well
    >>> outcomes.all()        # every result; raises the first failure
    """

    @property
    def succeeded(self) -> dict[Item, Result]:
        return {item: one for item, one in self.items() if not isinstance(one, Exception)}

    @property
    def failed(self) -> dict[Item, Exception]:
        return {item: one for item, one in self.items() if isinstance(one, Exception)}

    def all(self) -> dict[Item, Result]:
        """Every result; raises the first failure there is."""
        for failure in self.failed.values():
            raise failure
        return self.succeeded

    def one(self) -> Result:
        """The result of a request for one item only; raises its failure."""
        [result] = self.all().values()
        return result
