"""Collections with members found by name, by Tab and by a near miss, and the error for a miss."""

import re
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pandas as pd

from benchbook.api.columns import TerminalTable, frame_html
from benchbook.core.util.errors import NotThere, did_you_mean
from benchbook.show.markup import make_element

T = TypeVar("T")


class Delegated(property, Generic[T]):
    """A property that hands on the value at a path of its object, or the result of `read` on it."""

    def __init__(self, read: str | Callable[[Any], T], meaning: str) -> None:
        super().__init__(attrgetter(read) if isinstance(read, str) else read)
        # A class's own docstring would stand before that of a property.
        self.__doc__ = meaning

    if TYPE_CHECKING:

        def __get__(self, instance: Any, owner: type | None = None, /) -> T:  # type: ignore[override]
            raise NotImplementedError


class NamedCollection(Generic[T]):
    """Members in their order: `all["a-name"]`, `all.a_name`, `all[0]`, `all("a-na")`, or in a loop.

    An attribute is the name with everything but letters, digits and underscores turned into underscores.
    A call takes the beginning of a name, if only one begins so. Members are made when they are asked for.
    """

    def __init__(
        self,
        kind: str,
        names: Sequence[str],
        make: Callable[[str], T],
        table: Callable[[], pd.DataFrame] | None = None,
        hint: str = "",
    ) -> None:
        self._kind, self._names, self._make, self._table, self._hint = kind, list(names), make, table, hint

    @property
    def names(self) -> list[str]:
        """All names in their order."""
        return list(self._names)

    @property
    def table(self) -> pd.DataFrame:
        """One row a member."""
        return self._table() if self._table else TerminalTable({self._kind: self._names})

    def __getitem__(self, key: str | int) -> T:
        if isinstance(key, int):
            if not -len(self) <= key < len(self):
                raise NotThere(f"{self._kind} {key}: there are {len(self)}, counted from 0")
            key = self._names[key]
        if key not in self._names:
            raise NotThere(self._absent(key))
        return self._make(key)

    def __call__(self, key: str | int) -> T:
        """The member with the name `key`, or the only one with a name that begins with it."""
        if isinstance(key, int) or key in self._names:
            return self[key]
        start = str(key).rstrip("…").removesuffix("...")
        results = [name for name in self._names if start and name.startswith(start)]
        if len(results) == 1:
            return self[results[0]]
        if not results:
            raise NotThere(self._absent(key))
        more = f" and {len(results) - 6} more" if len(results) > 6 else ""
        raise NotThere(f"{key}: {len(results)} begin so: {', '.join(results[:6])}{more}; write more of it")

    def __getattr__(self, attribute: str) -> T:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        for name in self._names:
            if to_identifier(name) == attribute:
                return self[name]
        raise AttributeError(self._absent(attribute))

    def __iter__(self) -> Iterator[T]:
        return (self[name] for name in self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __dir__(self) -> list[str]:
        return ["names", "table", *map(to_identifier, self._names)]

    def _ipython_key_completions_(self) -> list[str]:
        return self.names

    def _absent(self, key: object) -> str:
        if not self._names:
            return f"{key}: there is no {self._kind}{f'; {self._hint}' if self._hint else ''}"
        near = did_you_mean(str(key), self._names)
        if len(near) > 400:
            near = f"there are {len(self._names)}, such as {self._names[0]}"
        return f"{key}: no such {self._kind}; {near}"

    def __repr__(self) -> str:
        return repr(self.table) if self._names else f"no {self._kind}; {self._hint}"

    def _repr_html_(self) -> str:
        if not self._names:
            return make_element("p", f"There is no {self._kind}. ", self._hint).text
        return frame_html(self.table)


def to_identifier(name: str) -> str:
    """Turn a name into one that can be written after a dot."""
    plain = re.sub(r"\W", "_", name)
    return f"_{plain}" if plain[:1].isdigit() else plain
