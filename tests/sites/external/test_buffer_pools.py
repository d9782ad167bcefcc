"""What `plan` says of the data beside the buffer pools of servers that others run."""

import re

import pytest

from benchbook.sites.external.buffer_pools import MIB, compare_sizes


@pytest.mark.parametrize(
    ("tables", "table_size", "pools", "said"),
    [
        (
            2,
            20_000,
            {"small": 16 * MIB, "large": 512 * MIB},
            r"8 MiB fit into every .*table_size: 82000 fits into only the larger",
        ),
        (2, 20_000, {"small": 16 * MIB, "large": 16 * MIB}, r"table_size: 62000 fits into none"),
        (4, 200_000, {"small": 16 * MIB, "large": 512 * MIB}, "157 MiB; .*fit into that of large alone"),
        (4, 2_000_000, {"small": 16 * MIB, "large": 512 * MIB}, "1,572 MiB; .*fit into none"),
    ],
)
def test_the_data_are_held_against_each_pool(tables, table_size, pools, said):
    line = compare_sizes(tables, table_size, pools)
    assert line.startswith("  data  ") and f"small 16 MiB, large {pools['large'] // MIB} MiB" in line
    assert re.search(said, line)
