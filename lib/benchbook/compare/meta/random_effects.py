"""Random effects over processors: log effects with variances in; their mean and a further one's place out.

tau² by Paule and Mandel (1982), in the form of DerSimonian and Kacker (2007); the mean's variance by Hartung
and Knapp with a factor of at least 1; the prediction interval by Higgins, Thompson and Spiegelhalter (2009).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
from scipy.special import chdtrc

from benchbook.compare.stats import tolerance
from benchbook.compare.stats.intervals import t_quantile
from benchbook.compare.text.cpu_models import may_be_same
from benchbook.core.artifacts.meta_analysis import Sign, StudySession
from benchbook.core.util import numeric_equality
from benchbook.core.util.grouping import group_by

WITHIN = timedelta(hours=6)
# What a session's own label says of a number that must decide nothing.
WITHHELD = ("no useful interval", "not decided yet")


@dataclass(frozen=True)
class Value:
    """A session's mean log effect with its standard error over n blocks, at the confidence `level`."""

    session: str
    log_effect: float
    standard_error: float
    n: int
    level: float
    label: str | None = None


@dataclass(frozen=True)
class Averaged:
    """The sessions of an occasion: the mean of their log effects with its error, and its sign if decided."""

    sessions: tuple[str, ...]
    log_effect: float
    standard_error: float
    sign: Sign


def parse_time(measured: str) -> datetime:
    """Time of a session as written, in UTC."""
    moment = datetime.fromisoformat(measured)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def group_occasions(sessions: Sequence[StudySession]) -> list[tuple[StudySession, ...]]:
    """Groups of sessions on possibly the same processor model, within 6 hours of the first.

    Each group is in the order of time, and so are the groups. A processor of which only the name is known
    may be any model of that name: counting too few occasions claims less than too many.
    """
    groups: list[list[StudySession]] = []
    for study_session in sorted(sessions, key=lambda session: (parse_time(session.measured), session.id)):
        for group in groups:
            is_near = parse_time(study_session.measured) - parse_time(group[0].measured) <= WITHIN
            if is_near and all(may_be_same(study_session.processor, other.processor) for other in group):
                group.append(study_session)
                break
        else:
            groups.append([study_session])
    return [tuple(group) for group in groups]


def average_occasion(values: Sequence[Value]) -> Averaged:
    """Average the sessions of an occasion: plain mean, and mean of the variances over their number.

    The variance is that of the blocks alone, which no two sessions share. What they do share, machine and
    hour, is what tau² between occasions takes up; in the variance it would narrow the prediction interval.
    """
    mean = numeric_equality.exact_mean([value.log_effect for value in values])
    error = math.sqrt(numeric_equality.exact_sum(value.standard_error**2 for value in values)) / len(values)
    df = sum(value.n - 1 for value in values)
    half = t_quantile((1 + max(value.level for value in values)) / 2, df) * error
    is_withheld = any(value.label in WITHHELD for value in values)
    sign: Sign = 0 if is_withheld else tolerance.sign_of_interval(mean - half, mean + half)
    return Averaged(tuple(value.session for value in values), mean, error, sign)


LEVEL = 0.90
"""Confidence of the mean's interval and of the prediction interval."""
FEWEST_OCCASIONS = 4
"""Occasions from which an effect may hold elsewhere."""
FEWEST_PROCESSORS = 3
"""Processor models from which a further one is predicted: two leave t with one degree of freedom."""
_STEPS = 200
_CLOSE = 1e-12


@dataclass(frozen=True)
class RandomEffects:
    """k log effects pooled: mean with its interval, `tau` between them, and a prediction interval.

    `tau` is the standard deviation of the true effects on the log scale; `q` is Cochran's, with its p value;
    `i_squared` the share of the scatter that the variances don't explain. Of one value only the mean is
    known. `prediction_low` and `prediction_high` are None below `FEWEST_PROCESSORS` values.
    """

    k: int
    mean: float
    standard_error: float
    low: float | None = None
    high: float | None = None
    prediction_low: float | None = None
    prediction_high: float | None = None
    tau: float | None = None
    q: float | None = None
    p: float | None = None
    i_squared: float | None = None

    def predict(self, variance: float = 0.0) -> tuple[float, float]:
        """Interval of a further value, given the variance of its error; ValueError of a single value."""
        if self.tau is None:
            raise ValueError("one value says nothing of another")
        spread = math.sqrt(self.tau**2 + self.standard_error**2 + variance)
        half = t_quantile((1 + LEVEL) / 2, self.k - 1) * spread
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class ProcessorPool:
    """Effects of occasions pooled by processor, with the spread between occasions of one processor.

    `pool` has processors as units; where all occasions are of one processor it has these as units, and says
    nothing of another. `within_tau` is None where no processor has two occasions.
    """

    pool: RandomEffects
    processors: int
    within_tau: float | None


def pool_by_processor(
    values: Sequence[float], variances: Sequence[float], models: Sequence[str]
) -> ProcessorPool:
    """Pool occasions: those of one processor model averaged first, then the models by random effects.

    `models` has the processor model of each occasion. The variance of a model's mean is the mean of its
    occasions' over their number. Raise ValueError as `pool` does.
    """
    whole = pool_effects(values, variances)
    of_model = group_by(range(len(models)), models.__getitem__)
    groups = [
        ([values[at] for at in places], [variances[at] for at in places]) for places in of_model.values()
    ]
    repeated = [group for group in groups if len(group[0]) > 1]
    within = math.sqrt(tau_squared(*repeated)) if repeated else None
    if len(of_model) == 1:
        return ProcessorPool(replace(whole, prediction_low=None, prediction_high=None), 1, within)
    means = [numeric_equality.exact_mean(logs) for logs, _ in groups]
    errors = [numeric_equality.exact_sum(squares) / len(squares) ** 2 for _, squares in groups]
    return ProcessorPool(pool_effects(means, errors), len(of_model), within)


Group = tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray]


def tau_squared(*groups: Group) -> float:
    """Paule and Mandel's estimate: weighted squares about the group means equal their expectation.

    A group is values and their variances. That sum falls with tau² and is convex, so Newton's steps from zero
    never pass the root. Zero where the variances alone explain the scatter.
    """
    arrays = [(np.asarray(y, dtype=float), np.asarray(v, dtype=float)) for y, v in groups]
    squared, df = 0.0, sum(len(y) - 1 for y, _ in arrays)
    for _ in range(_STEPS):
        excess, slope = -float(df), 0.0
        for y, v in arrays:
            weights = 1 / (v + squared)
            left = y - (weights * y).sum() / weights.sum()
            excess += float((weights * left**2).sum())
            slope += float((weights**2 * left**2).sum())
        if excess <= _CLOSE:
            break
        squared += excess / slope
    return squared


def pool_effects(values: Sequence[float], variances: Sequence[float]) -> RandomEffects:
    """Pool log effects with the variances of their errors.

    Raise ValueError without any, or where a variance is not above zero: such a value would count for all.
    """
    y, v = np.asarray(values, dtype=float), np.asarray(variances, dtype=float)
    if not len(y) or len(y) != len(v):
        raise ValueError(f"{len(y)} effects and {len(v)} variances; as many of both are needed, at least one")
    if not (np.isfinite(y).all() and np.isfinite(v).all() and (v > 0).all()):
        raise ValueError("an effect without a variance above zero can't be pooled; leave it out by name")
    if len(y) == 1:
        return RandomEffects(1, float(y[0]), math.sqrt(v[0]))
    between, df = tau_squared((y, v)), len(y) - 1
    weights = 1 / (v + between)
    mean = float((weights * y).sum() / weights.sum())
    factor = max(1.0, float((weights * (y - mean) ** 2).sum()) / df)
    error = math.sqrt(factor / float(weights.sum()))
    half = t_quantile((1 + LEVEL) / 2, df) * error
    q = float(((y - (y / v).sum() / (1 / v).sum()) ** 2 / v).sum())
    share = max(0.0, (q - df) / q) if q > 0 else 0.0
    random_effects = RandomEffects(
        len(y), mean, error, mean - half, mean + half, tau=math.sqrt(between),
        q=q, p=float(chdtrc(df, q)), i_squared=share,
    )  # fmt: skip
    if len(y) < FEWEST_PROCESSORS:
        return random_effects
    low, high = random_effects.predict()
    return replace(random_effects, prediction_low=low, prediction_high=high)
