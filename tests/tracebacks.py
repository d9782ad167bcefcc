"""Tracebacks of tests that failed: short, or as Python writes them where pytest can't shorten one."""

import traceback
from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report of a test's phase. To shorten a traceback pytest looks into its frames and parses their sources.

    Deep in the stack Python may meet its recursion limit there, which would end the run without a name.
    """
    try:
        return (yield)
    except RecursionError:
        assert call.excinfo is not None
        return pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords=dict.fromkeys(item.keywords, 1),
            outcome="failed",
            longrepr="".join(traceback.format_exception(call.excinfo.value)),
            when=call.when,
            duration=call.duration,
            start=call.start,
            stop=call.stop,
        )
