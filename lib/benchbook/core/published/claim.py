"""Claims of a document, as expressions over its own cells; one model for every kind of claim."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from benchbook.core.study.study_base import Model

Scalar = str | int | float
Selector = Mapping[str, Scalar | tuple[Scalar, ...]]
PERCENT = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*%")

# What each kind must say, and what it may say beside the fields that all claims share.
KINDS: dict[str, tuple[set[str], set[str]]] = {
    "effect": (
        {"metric", "baseline", "treatment", "band"},
        {"cells", "where", "across", "by", "baseline_by", "judged_by"},
    ),
    "value": ({"metric", "cells", "band"}, {"where", "across", "by", "judged_by"}),
    "same_effect": ({"metric", "one", "other", "along"}, {"cells"}),
    "trend": ({"metric", "along", "direction"}, {"cells", "baseline", "treatment", "across", "by"}),
    "proportional": ({"metric", "along"}, {"cells", "band"}),
    "peak": ({"metric", "along", "band"}, {"cells", "across", "by"}),
    "unit": ({"metric", "candidates", "cells", "band"}, {"across", "by"}),
    "text_only": ({"published", "because"}, {"metric"}),
}
Kind = Literal["effect", "value", "same_effect", "trend", "proportional", "peak", "unit", "text_only"]
Together = Literal["mean", "min", "max", "median"]


def _check_amount(value: str | int | float) -> str | int | float:
    if isinstance(value, str) and not PERCENT.fullmatch(value):
        remedy = 'write a share as text with its sign, such as "7 %", a value as a number'
        raise ValueError(f"not an amount; {remedy}")
    return value


Amount = Annotated[str | int | float, AfterValidator(_check_amount)]


def parse_amount(amount: str | int | float) -> float:
    """Amount as a number; "7 %" is 0.07."""
    match = PERCENT.fullmatch(amount) if isinstance(amount, str) else None
    return float(match[1]) / 100 if match else float(amount)


class SourcePart(Model):
    """A part of a document; null of any key that may be left out means that the document does not say it."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, arguments: Any) -> Any:
        if not isinstance(arguments, Mapping):
            return {} if arguments is None else arguments
        optional = {key for key, field in cls.model_fields.items() if not field.is_required()}
        return {key: value for key, value in arguments.items() if value is not None or key not in optional}


class ClaimedBand(SourcePart):
    """Claimed figure: exactly one of a point, a range, a bound from below or a bound from above."""

    point: Amount | None = Field(None, examples=["7 %"])
    """One number."""
    range: tuple[Amount, Amount] | None = Field(None, examples=[["50 %", "60 %"]])
    """Two numbers, the lower first."""
    above: Amount | None = Field(None, examples=["-5 %"])
    """A bound that is exceeded: "less than 5 % lower" is above "-5 %"."""
    below: Amount | None = Field(None, examples=["5 %"])
    """A bound that is not reached."""
    tolerance: Amount | None = Field(None, examples=["2 %"])
    """Margin around a point where the source itself gives one; null takes the project's rule."""

    @model_validator(mode="after")
    def _require_one_band(self) -> ClaimedBand:
        inputs = [key for key in ("point", "range", "above", "below") if getattr(self, key) is not None]
        if len(inputs) != 1:
            raise ValueError("a band is one of point, range, above, below; write exactly one")
        if self.range is not None and parse_amount(self.range[0]) > parse_amount(self.range[1]):
            raise ValueError("the range falls; write the lower number first")
        if self.tolerance is not None and self.point is None:
            raise ValueError("a tolerance belongs to a point; remove it")
        return self

    @property
    def amounts(self) -> tuple[str | int | float, ...]:
        both = self.range or ()
        return tuple(x for x in (self.point, *both, self.above, self.below, self.tolerance) if x is not None)

    @property
    def is_share(self) -> bool:
        """True if the amounts carry a percent sign."""
        return any(isinstance(amount, str) for amount in self.amounts)


class Condition(SourcePart):
    """Restriction of a claim to cells, by a value of theirs; it may leave none."""

    metric: str | None = None
    """A metric that was printed for the cell."""
    key: str | None = None
    """Or a key of the cell."""
    of: Literal["treatment", "baseline"] = "treatment"
    """Whose value is looked at, where two arms are compared."""
    above: float | None = None
    """The value must be above this."""
    below: float | None = None
    """The value must be below this."""
    whole: float | None = Field(None, gt=0, examples=[400])
    """The metric where everything is used, such as 400 for four vCPUs: a study is held to the same share."""

    @model_validator(mode="after")
    def _complete(self) -> Condition:
        if (self.metric is None) == (self.key is None):
            raise ValueError("a condition looks at a metric or at a key; write one of them")
        if self.above is None and self.below is None:
            raise ValueError("a condition without a bound; write above or below")
        return self


class _Cells(SourcePart):
    """Cells by metric, and their combination."""

    metric: str | None = Field(None, examples=["qps"])
    """A metric, or one divided by another: `cpu_proxy_pct / qps`."""
    baseline: Selector | None = None
    """Cells compared against."""
    treatment: Selector | None = None
    """Cells in question."""
    cells: Selector | None = None
    """What holds for all cells that the claim speaks of; null: all cells."""
    across: str | None = None
    """A key over which cells are put together first, such as `second`."""
    by: Together = "mean"
    """How they are put together."""


class Supplement(_Cells):
    """A computation shown next to a claim; it decides nothing."""

    says: str
    """What the computation shows."""
    metric: str
    """A metric, or one divided by another: `cpu_proxy_pct / qps`."""
    baseline: Selector | None = None
    """Cells compared against; without it the values themselves are shown."""


class Question(_Cells):
    """Cells of a question, in a claim's own words or in those that put it to a study."""

    kind: Kind
    """What is claimed: an effect of one arm over another, a value, and so on."""
    one: Selector | None = None
    """For `same_effect`: the cells whose fall or rise is compared ..."""
    other: Selector | None = None
    """... with that of these."""
    where: tuple[Condition, ...] = ()
    """Conditions on the cells, such as a proxy below 80 % CPU."""
    baseline_by: Together | None = None
    """How the baseline's are put together; null: as the treatment's."""
    band: ClaimedBand | None = None
    """What was claimed."""
    judged_by: Literal["mean", "every_cell", "most_cells"] | None = None
    """What must lie in the band; null: the geometric mean for a point, every cell for a range or a bound."""
    along: str | None = None
    """The key along which a trend or a proportion runs."""
    direction: Literal["rises", "falls", "grows", "shrinks"] | None = None
    """`rises` and `falls` speak of the value, `grows` and `shrinks` of its size without sign."""
    candidates: tuple[str, ...] = ()
    """For `unit`: the metrics that the number could mean; `metric` is the one that was written."""


class StudyOverrides(Question):
    """Keys in place of the claim's for studies that its own words don't apply to."""

    says: str
    """How the claim was read for that, in a sentence."""


class ClaimSpec(Question):
    """One claim of the document."""

    claim: str
    """The claim, in our words."""
    stands: str | None = None
    """Where it stands in the document."""
    published: str | None = None
    """What was published, in a few words; null lets the band speak."""
    because: str | None = None
    """For `text_only`: why no table of the document can show it."""
    put: StudyOverrides | None = None
    """How it is put to a study, where its own words can't be; null: as it stands."""
    takes: str | None = None
    """What a study would need to answer it, where none that is shipped has it."""
    note: str | None = None
    """How the claim was read, where it could be read otherwise."""
    beside: tuple[Supplement, ...] = ()
    """Computations shown next to the claim."""

    @model_validator(mode="after")
    def _require_keys_of_kind(self) -> ClaimSpec:
        needed, allowed = KINDS[self.kind]
        shared = {"kind", "claim", "stands", "published", "put", "takes", "note", "beside"}
        inputs = {key for key in self.model_fields_set if getattr(self, key) not in (None, (), {})}
        missing, strange = sorted(needed - inputs), sorted(inputs - needed - allowed - shared)
        if missing:
            raise ValueError(f"a claim of kind {self.kind} needs {', '.join(missing)}; add it")
        if strange:
            raise ValueError(f"a claim of kind {self.kind} has no {', '.join(strange)}; remove it")
        amounts = self.band.amounts if self.band is not None else ()
        if self.kind == "effect" and not all(isinstance(amount, str) for amount in amounts):
            raise ValueError('an effect without its unit; write the band in percent, such as point: "7 %"')
        if self.kind == "trend" and (self.baseline is None) != (self.treatment is None):
            raise ValueError("a trend of an effect needs baseline and treatment; add the other one")
        return self

    @property
    def as_put(self) -> ClaimSpec:
        """The claim as a study is asked for it."""
        if self.put is None:
            return self
        inputs = self.put.model_dump(exclude={"says"}, exclude_defaults=True)
        messages = {"claim": self.claim, "stands": self.stands, "published": self.published}
        return ClaimSpec.model_validate({**messages, **inputs, "note": self.put.says})
