"""How long loading took: one row for each copy of the data, and nothing where nobody took the time."""

from __future__ import annotations

from benchbook.show import tables


def test_arms_that_share_data_share_a_row_with_rows_a_second() -> None:
    dataset = {
        "tables": 4,
        "table_size": 50_000,
        "loads": {
            "first": {"index": "before the rows", "seconds": 8.0},
            "cold": {"index": "before the rows", "seconds": 8.0},
            "last": {"index": "after the rows", "seconds": 12.5},
        },
    }
    (table,) = tables.loading(dataset, {"first": "the first"})
    # 4 x 50,000 rows in 8 s are 25,000 a second, in 12.5 s 16,000.
    assert [row[:2] for row in table.rows] == [
        ["the first, cold", "before the rows"],
        ["last", "after the rows"],
    ]
    assert [str(row[3]).replace(",", "").replace("\u202f", "") for row in table.rows] == ["25000", "16000"]
    assert "loaded once" in table.caption and "no interval" in table.caption


def test_data_that_were_loaded_once_for_all_arms_have_no_table() -> None:
    assert tables.loading({"tables": 1, "table_size": 10, "loads": {}}, {}) == []
    assert tables.loading({"tables": 1, "table_size": 10}, {}) == tables.loading(None, {}) == []
