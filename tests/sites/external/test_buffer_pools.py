"""What `plan` says of the data beside the buffer pools of servers that others run."""

import re

import pytest

from benchbook.sites.external.buffer_pools import MIB, compare_sizes


@pytest.mark.parametrize(
    ("tables", "table_size", "pools", "said"),
    [
        (2, 20_000, {"small": 16 * MIB, "large": 512 * MIB}, "8 MiB fit into every buffer pool"),
        (4, 200_000, {"small": 16 * MIB, "large": 512 * MIB}, "157 MiB; .*fit into that of large alone"),
        (4, 2_000_000, {"small": 16 * MIB, "large": 512 * MIB}, "1,572 MiB; .*fit into none"),
    ],
)
def test_the_data_are_held_against_each_pool(tables, table_size, pools, said):
    line = compare_sizes(tables, table_size, pools)
    assert line.startswith("  data  ") and "small 16 MiB, large 512 MiB" in line
    assert re.search(said, line)
