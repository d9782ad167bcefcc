"""Parts that wait take turns, whatever ends one ends all others, and ends happen at once."""

import threading

import pytest

from benchbook.sites.machine import concurrent_steps


class Part:
    """Something that is ready after some looks and writes down what happened to it."""

    def __init__(self, name: str, looks: int, book: list[str], is_broken: bool = False) -> None:
        self.name, self.looks, self.book, self.is_broken = name, looks, book, is_broken

    def starting(self) -> concurrent_steps.Steps:
        self.book.append(f"{self.name} begins")
        try:
            for _ in range(self.looks):
                yield
            if self.is_broken:
                raise OSError(self.name)
        except BaseException:
            self.book.append(f"{self.name} is stopped")
            raise
        self.book.append(f"{self.name} is ready")


def test_all_begin_before_the_first_is_ready_and_each_is_done_when_it_is():
    book: list[str] = []
    parts = Part("slow", 3, book), Part("fast", 1, book)
    concurrent_steps.run_steps(concurrent_steps.interleave_steps(*(part.starting() for part in parts)), 0.0)
    assert book == ["slow begins", "fast begins", "fast is ready", "slow is ready"]


def test_an_error_of_one_is_raised_and_stops_those_that_still_wait():
    book: list[str] = []
    parts = Part("ready", 0, book), Part("broken", 1, book, is_broken=True), Part("waiting", 9, book)
    with pytest.raises(OSError, match="broken"):
        steps = (part.starting() for part in parts)
        concurrent_steps.run_steps(concurrent_steps.interleave_steps(*steps), 0.0)
    assert book[-2:] == ["broken is stopped", "waiting is stopped"]
    assert book.count("ready is ready") == 1


def test_an_interrupt_while_nothing_is_ready_stops_all(monkeypatch: pytest.MonkeyPatch):
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(concurrent_steps.time, "sleep", interrupted)
    book: list[str] = []
    parts = Part("one", 9, book), Part("two", 9, book)
    # The error holds on to the frames, so nothing may be left to the collector of garbage.
    with pytest.raises(KeyboardInterrupt) as held:
        steps = (part.starting() for part in parts)
        concurrent_steps.run_steps(concurrent_steps.interleave_steps(*steps), 0.02)
    assert held.value is not None and sorted(book[2:]) == ["one is stopped", "two is stopped"]


def test_ends_happen_at_once_and_each_is_told():
    both = threading.Barrier(2, timeout=60)

    def end() -> int:
        return both.wait()

    assert sorted(concurrent_steps.at_once([end, end])) == [0, 1]
    assert concurrent_steps.at_once([]) == []
