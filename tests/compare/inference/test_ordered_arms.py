"""A ladder: the best arm up to each; who is compared with whom is among the studies of `findings.yaml`."""

from benchbook.compare.inference import findings
from benchbook.compare.inference.ordered_arms import find_best_arms
from benchbook.core.study.params import Analysis


def test_a_study_without_a_ladder_has_no_such_key(make_study, make_runs, no_voids, no_histograms):
    tidy = {"runs": make_runs({"haproxy": {4: [1.1] * 5}}), "voids": no_voids, "histograms": no_histograms}
    made = findings.build_findings("quick", make_study(), tidy, Analysis())
    assert made.ladder is None and "ladder" not in made.plain


def test_where_less_is_better_the_best_is_the_lowest():
    labels = {("a", "b"): "lower", ("b", "c"): "higher", ("a", "c"): "lower"}
    assert find_best_arms(["a", "b", "c"], labels, "lower") == ["a", "b", "b"]
    assert find_best_arms(["a", "b", "c"], labels, "higher") == ["a", "a", "a"]
