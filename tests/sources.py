"""The published sources and their audits, each computed once for all tests; none may change them."""

from functools import cache

from benchbook.compare.claims import audit
from benchbook.core.published.audit import Audit
from benchbook.core.published.source import Published
from benchbook.core.util import source_files
from benchbook.read import published


@cache
def read(name: str) -> Published:
    """Return a source with its tables."""
    return published.load_source(name)


@cache
def audited(name: str) -> Audit:
    """Return the audit of a source."""
    return audit.audit_source(read(name))


def every() -> dict[str, Published]:
    """Return all sources by name."""
    return {name: read(name) for name in source_files.source_names()}


def audits() -> dict[str, Audit]:
    """Return all audits by name."""
    return {name: audited(name) for name in source_files.source_names()}
