"""Items in groups by a key, each group and its items in the order in which they come."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def group_by(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by their key.

    >>> group_by(["direct", "haproxy", "http"], lambda name: name[0])
    {'d': ['direct'], 'h': ['haproxy', 'http']}
    """
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
