"""Names and sentences that a stranger reads without knowing this project's words."""

import pytest

from benchbook.compare.text import labels, sentences
from tests.found import finding

FOUND = {
    "workload": "oltp_point_select", "baseline": "direct", "treatment": "haproxy", "metric": "qps",
    "effect": -0.237, "low": -0.284, "high": -0.188, "level": 0.98, "n": 5, "label": "lower",
    "headline": True,
    "names": {"workload": "point selects", "baseline": "direct connections", "treatment": "HAProxy"},
    "levels": [], "depends_on_threads": None,
    "blocks_to_useful": {"blocks": 12, "minutes": 25.2},
}  # fmt: skip


def _level(threads, effect, low, high, label):
    return {
        "threads": threads,
        "effect": effect,
        "low": low,
        "high": high,
        "level": 0.98,
        "n": 5,
        "label": label,
    }


LEVELS = [
    _level(1, -0.244, -0.25, -0.238, "lower"),
    _level(4, -0.119, -0.14, -0.1, "lower"),
    _level(16, 0.016, -0.02, 0.05, "not shown"),
]


def _said(**changes) -> str:
    return sentences.sentence(finding(**FOUND | changes)).replace("\xa0", " ")


def test_an_effect_is_subject_verb_number_interval_and_blocks():
    assert _said() == (
        "HAProxy served 23.7 % fewer queries per second than direct connections on point selects "
        "(98 % interval −28.4 to −18.8 %, 5 blocks)."
    )
    assert _said(effect=0.1, low=0.05, high=0.15, n=1).startswith(
        "HAProxy served 10.0 % more queries per second"
    )
    assert "+5.0 to +15.0 %, 1 block)" in _said(effect=0.1, low=0.05, high=0.15, n=1)


def test_an_arm_is_called_as_the_study_says_in_sentences_and_without_article_in_tables():
    names = {"workload": "point selects", "baseline": "the n1 machine", "treatment": "the c2 machine"}
    said = _said(treatment="c2", baseline="n1", names=names)
    assert said.startswith("The c2 machine served 23.7 % fewer queries per second than the n1 machine on")
    found = finding(**FOUND | {"names": names})
    assert (labels.of(found, "treatment"), labels.inside(found, "treatment")) == (
        "c2 machine",
        "the c2 machine",
    )
    phrase = {"names": names | {"treatment": "several zones", "baseline": "one zone"}}
    assert _said(**phrase).startswith("Several zones served 23.7 % fewer queries per second than one zone")
    for key, said in ("before again", "Before again"), ("best-effort", "Best-effort"), ("proxy", "Proxy"):
        assert _said(names=names | {"treatment": key}).startswith(f"{said} served 23.7 % fewer")
    key = {"names": names | {"treatment": "v2 and more"}}
    assert _said(**key).startswith("v2 and more served"), "the spelling of what is no word is not changed"


def test_a_network_has_an_article_and_a_sentence_begins_with_a_capital():
    names = {"workload": "point selects", "baseline": "direct connections", "treatment": "pod network"}
    said = _said(treatment="pod", names=names)
    assert said.startswith("The pod network served 23.7 % fewer queries per second than direct connections")
    again = _said(treatment="pod", names=names, label="not shown", low=-0.02, high=0.03)
    assert "between the pod network and direct connections was shown" in again


def test_an_interval_without_zero_that_the_correction_for_many_contrasts_left_is_not_called_no_difference():
    lost = {"label": "not shown", "effect": 0.076, "low": 0.004, "high": 0.152}
    assert _said(**lost) == (
        "Once all contrasts of the study are counted (Holm), no difference is decided between HAProxy and "
        "direct connections on point selects: +7.6 % (98 % interval +0.4 to +15.2 %, 5 blocks)."
    )


def test_a_latency_is_higher_or_lower_and_never_served():
    said = _said(metric="latency_p99_ms", effect=0.12, low=0.1, high=0.14, label="higher")
    assert said.startswith(
        "P99 latency was 12.0 % higher with HAProxy than with direct connections on point selects"
    )


def test_each_thread_level_is_said_with_its_own_outcome():
    assert _said(label="depends on threads", headline=False, levels=LEVELS) == (
        "HAProxy served 24.4 % fewer queries per second than direct connections on point selects at 1 thread "
        "(98 % interval −25.0 to −23.8 %) and 11.9 % fewer at 4 threads (−14.0 to −10.0 %); no "
        "difference was shown at 16 threads (−2.0 to +5.0 %); 5 blocks."
    )


def test_an_effect_of_one_sign_that_changes_with_threads_names_the_levels_behind_its_mean():
    test = {"f": 9.0, "p": 0.01, "df1": 2, "df2": 8}
    assert _said(levels=LEVELS, depends_on_threads=test).endswith(
        "On point selects the effect depends on threads: 24.4 % fewer at 1 thread, 11.9 % fewer at 4 threads "
        "and no difference was shown at 16 threads."
    )
    assert "depends" not in _said(levels=LEVELS, depends_on_threads={**test, "p": 0.4})


def test_where_no_level_shows_a_difference_none_is_put_first():
    levels = [{**level, "label": "not shown"} for level in LEVELS]
    said = _said(label="depends on threads", headline=False, levels=levels)
    assert said.startswith(
        "Threads change how HAProxy compares with direct connections on point selects, though no diff"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"label": "not shown", "high": 0.02}, "No difference in queries per second between HAProxy and"),
        ({"label": "no practical difference"}, "HAProxy and direct connections differ by no more than 1 %"),
        ({"label": "not decided yet"}, "Nothing is decided yet on point selects; so far HAProxy served"),
        ({"label": "no useful interval"}, "No useful interval yet for HAProxy against direct"),
        ({"label": "no useful interval", "metric": "latency_p99_ms"}, "yet for p99 latency with HAProxy"),
        ({"effect": None, "low": None, "reason": "no complete block"}, "HAProxy could not be compared"),
        ({"low": None, "high": None, "reason": "an interval needs 3 blocks"}, "there is no interval: an"),
    ],
)  # fmt: skip
def test_what_is_not_shown_is_said_in_words(changes, said):
    assert said in _said(**changes)


def test_an_interval_that_is_of_no_use_says_what_would_help():
    said = _said(
        label="no useful interval", withheld="Equal arms (A/A) came out anywhere from −40 % to +47 % apart."
    )
    assert said.endswith("apart. About 12 more blocks, some 25 minutes, or a quieter machine would help.")
    assert _said(label="no useful interval", blocks_to_useful=None).endswith("A quieter machine would help.")


@pytest.mark.parametrize(
    ("name", "access", "said"),
    [
        ("haproxy", "haproxy", "HAProxy"),
        ("haproxy", "direct", "haproxy"),  # an arm of this name that has no proxy
        ("tiproxy-2", "tiproxy", "TiProxy-2"),
        ("direct", "direct", "direct connections"),
        ("direct", "service", "direct"),
        ("pod", "direct", "pod"),
        ("haproxy_again", "haproxy", "HAProxy again"),
    ],
)
def test_an_arm_is_called_by_what_it_is_known_to_be(name, access, said):
    assert labels.arm(name, access) == said


def test_a_workload_of_another_name_keeps_it_beside_what_its_script_does():
    assert labels.workload("rows_10", "select_random_ranges") == "selects of random ranges (rows_10)"
    assert labels.workload("own_script", "own_script") == "own_script"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"blocks": 1, "minutes": 0.2}, "About 1 more block, some 1 minute, or"),
        ({"blocks": 1200, "minutes": 119.9}, "About 1,200 more blocks, some 120 minutes, or"),
        ({"blocks": 1200, "minutes": 120.0}, "some 2 hours, or"),
        ({"blocks": 3, "minutes": None}, "About 3 more blocks, or"),
        ({"blocks": 0, "minutes": 0.0}, "5 blocks). A quieter machine would help."),
    ],
)
def test_what_would_help_is_counted_in_blocks_and_time(more: dict, said: str):
    assert said in _said(label="no useful interval", blocks_to_useful=more)


@pytest.mark.parametrize(("p", "is_told"), [(0.049, True), (0.05, False)])
def test_levels_are_told_apart_where_the_test_says_so(p: float, is_told: bool):
    test = {"f": 9.0, "p": p, "df1": 2, "df2": 8}
    assert ("depends on threads" in _said(levels=LEVELS, depends_on_threads=test)) == is_told
    assert "depends on threads" not in _said(levels=LEVELS[:1], depends_on_threads=test)


@pytest.mark.parametrize(
    ("low", "high", "is_lost"),
    [(0.001, 0.1, True), (0.0, 0.1, False), (-0.1, 0.0, False), (-0.1, -0.001, True), (-0.1, 0.1, False)],
)
def test_an_interval_that_touches_nothing_lost_no_difference(low: float, high: float, is_lost: bool):
    said = _said(label="not shown", effect=0.05, low=low, high=high)
    assert said.startswith(sentences.LOST if is_lost else "No difference in queries per second")


def test_an_effect_of_nothing_has_no_sign():
    assert sentences.percent(-0.0004).replace("\xa0", " ") == "0.0 %"
    assert sentences.percent(0.0005001).replace("\xa0", " ") == "+0.1 %"
    assert sentences.listing([1]) == "1" and sentences.listing([1, 2, 3], "or") == "1, 2 or 3"
    assert sentences.listing([]) == ""
