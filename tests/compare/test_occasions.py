"""Which sessions count as one occasion, and what their average is."""

import math

import pytest

from benchbook.compare.machines import models, name, processor
from benchbook.compare.occasions import Value, averaged, occasions
from benchbook.core.pooled import Session

XEON = "Intel(R) Xeon(R) Processor (family 6, model 207, stepping 2)"
OTHER_XEON = "Intel(R) Xeon(R) Processor (family 6, model 143, stepping 8)"
UNTOLD_XEON = "Intel(R) Xeon(R) Processor"
EPYC = "AMD EPYC (family 26, model 2, stepping 1)"


def at(measured: str, told: str = XEON) -> Session:
    return Session(id=measured, measured=measured, design="a1", processor=processor(told))


def grouped(*sessions: Session) -> list[list[str]]:
    return [[one.measured[8:] for one in group] for group in occasions(sessions)]


def test_six_hours_count_from_the_first_session_of_an_occasion():
    night = [at(f"2026-11-22T{hour}") for hour in ("08:00", "14:00", "02:00", "08:01")]
    # 02:00 to 08:00 are six hours; 08:01 begins anew, and 14:00 is within six hours of that.
    assert grouped(*night) == [["22T02:00", "22T08:00"], ["22T08:01", "22T14:00"]]


def test_another_model_is_another_occasion_though_its_name_is_the_same():
    assert len(grouped(at("2026-11-22T02:00"), at("2026-11-22T02:00", OTHER_XEON))) == 2
    assert len(grouped(at("2026-11-22T02:00"), at("2026-11-22T03:00", EPYC))) == 2


def test_a_name_alone_may_be_any_model_of_that_name():
    sessions = [
        at("2026-11-22T02:00", UNTOLD_XEON),
        at("2026-11-22T03:00"),
        at("2026-11-22T04:00", OTHER_XEON),
    ]
    # The last can't be the second's model, so it stands alone.
    assert grouped(*sessions) == [["22T02:00", "22T03:00"], ["22T04:00"]]
    told = [one.processor for one in sessions]
    assert models(told) == 2
    assert models(told[:1]) == 1
    assert models([*told, processor("AMD EPYC")]) == 3


def test_times_of_other_zones_are_compared_as_moments():
    assert len(grouped(at("2026-11-22T02:00+02:00"), at("2026-11-22T05:00Z"))) == 1


def test_an_average_has_the_error_of_independent_blocks():
    # sqrt(0.03² + 0.04²) / 2 = 0.025; t with 8 degrees of freedom at 98 % is 2.896, so ±0.0724.
    far = averaged([Value("a", 0.10, 0.03, 5, 0.98), Value("b", 0.06, 0.04, 5, 0.95)])
    assert far.log_effect == pytest.approx(0.08)
    assert far.standard_error == pytest.approx(0.025)
    assert far.sign == 1
    near = averaged([Value("a", -0.10, 0.03, 5, 0.98), Value("b", -0.04, 0.04, 5, 0.95)])
    assert near.sign == 0


@pytest.mark.parametrize("label", ["no useful interval", "not decided yet"])
def test_what_a_session_withholds_decides_nothing(label):
    assert averaged([Value("a", 0.5, 0.01, 5, 0.98, label)]).sign == 0
    assert averaged([Value("a", 0.5, 0.01, 5, 0.98, "higher")]).sign == 1


def test_processors_are_called_what_people_call_them():
    assert name(processor(XEON)) == "Xeon Emerald Rapids"
    assert (
        name(processor("Intel(R) Xeon(R) Gold 6226 CPU @ 2.70GHz (family 6, model 85, stepping 7)"))
        == "Xeon Gold 6226"
    )
    assert name(processor(None)) == "unknown"
    assert math.isclose(models([]), 0)


@pytest.mark.parametrize(
    ("maker", "family", "model", "generation"),
    [
        # As Linux (intel-family.h) and AMD's revision guides number them.
        ("Intel(R) Xeon(R)", 6, 85, "Xeon Skylake to Cooper Lake"),
        ("Intel(R) Xeon(R)", 6, 106, "Xeon Ice Lake"),
        ("Intel(R) Xeon(R)", 6, 143, "Xeon Sapphire Rapids"),
        ("Intel(R) Xeon(R)", 6, 207, "Xeon Emerald Rapids"),
        ("Intel(R) Xeon(R)", 6, 173, "Xeon Granite Rapids"),
        ("Intel(R) Xeon(R)", 6, 175, "Xeon Sierra Forest"),
        ("AMD EPYC", 23, 1, "EPYC Zen"),
        ("AMD EPYC", 23, 49, "EPYC Zen 2"),
        ("AMD EPYC", 25, 1, "EPYC Zen 3"),
        ("AMD EPYC", 25, 17, "EPYC Zen 4"),
        ("AMD EPYC", 25, 160, "EPYC Zen 4c"),
        ("AMD EPYC", 26, 2, "EPYC Zen 5"),
        ("AMD EPYC", 26, 17, "EPYC Zen 5c"),
        ("AMD EPYC", 26, 18, "EPYC model 26/18"),
    ],
)
def test_a_processor_of_a_cloud_has_the_name_of_its_generation(maker, family, model, generation):
    told = f"{maker} Processor (family {family}, model {model}, stepping 1)"
    assert name(processor(told)) == generation
