"""A price gives a table of costs, each with its interval or the reason why it has none."""

from __future__ import annotations

from bs4 import BeautifulSoup

from benchbook.show import costs

CELL = {"workload": "oltp_point_select", "threads": 4, "price_per_hour": 3.6, "level": 0.98, "n": 5}
COSTS = {
    "currency": "EUR",
    "arms": [
        {**CELL, "arm": "direct", "cost": 1.0, "low": 0.95, "high": 1.06, "reason": None},
        {**CELL, "arm": "haproxy", "cost": 1.2, "low": None, "high": None, "reason": "too few blocks"},
    ],
    "contrasts": [],
}


def test_a_cost_stands_with_its_interval_or_the_reason_why_it_has_none():
    (table,) = costs.tables({"costs": COSTS})
    soup = BeautifulSoup(table._repr_html_(), "html.parser")
    first, second = (row.get_text(" ").replace("\xa0", " ") for row in soup.find("tbody").find_all("tr"))
    assert "1.00" in first and "0.950 to 1.06" in first
    assert "1.20" in second and "0.950" not in second
    assert "too few blocks" in soup.get_text()
    assert "EUR per million queries" in soup.get_text() and "98 %" in soup.get_text().replace("\xa0", " ")


def test_without_a_price_there_is_no_table():
    assert costs.tables({}) == []
