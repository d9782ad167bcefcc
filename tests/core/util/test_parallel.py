"""Workers that are ended cost no traceback, and do not hear what is meant for their parent."""

import os
import signal

import pytest

from benchbook.core.util import parallel
from benchbook.core.util.errors import BenchbookError
from tests.goldens import assert_golden_case


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def blocked() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_worker_that_memory_ran_out_for_is_told_in_words():
    with pytest.raises(BenchbookError) as killed, parallel.process_pool(2) as submit:
        submit(end).result()
    assert_golden_case("refused_files.txt", "worker: killed", str(killed.value))


def test_ctrl_c_is_the_parents_alone():
    with parallel.process_pool(2) as submit:
        assert submit(blocked).result()
    assert not blocked()
