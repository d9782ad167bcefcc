"""What `plan` says of the data beside the buffer pools of servers that others run."""

import re

import pytest

from benchbook.sites.external.buffer_pools import MIB, compare_sizes


@pytest.mark.parametrize(
    ("tables", "table_size", "large_mib", "said"),
    [
        (2, 20_000, 512, "8 MiB fit into every .*table_size: 82000 fits into only the larger"),
        (2, 20_000, 16, "table_size: 62000 fits into none"),
        (4, 200_000, 512, "157 MiB; .*fit into that of large alone"),
        (4, 2_000_000, 512, "1,572 MiB; .*fit into none"),
    ],
)
def test_the_data_are_held_against_each_pool(tables: int, table_size: int, large_mib: int, said: str):
    line = compare_sizes(tables, table_size, {"small": 16 * MIB, "large": large_mib * MIB})
    assert line.startswith("  data  ") and f"small 16 MiB, large {large_mib} MiB" in line
    assert re.search(said, line)
