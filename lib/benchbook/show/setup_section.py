"""Setup: programs with their versions, machines and data, settings, and the files applied."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.compare.text import labels
from benchbook.core.artifacts import applied_config
from benchbook.core.study import descriptors
from benchbook.core.study.descriptors import product_name
from benchbook.core.study.sysbench_workloads import ROW_BYTES
from benchbook.core.util.number_format import NBSP, format_count, join_words
from benchbook.show.evidence import ReportInputs
from benchbook.show.markup import Html
from benchbook.show.table import Table, build_table, text_column
from benchbook.show.templating import render_template

# TiDB writes a version of MySQL before its own, as in `8.0.11-TiDB-v8.5.0`.
_VERSIONS = (re.compile(r"TiDB-v?(\d[\w.]*)"), re.compile(r"^v?(\d+(?:\.\d+)*)"))
_MOST_MACHINES, _MOST_WORKLOADS = 2, 3
_MEMORY, _DURABILITY = descriptors.MEANINGS[:2]
_ENCRYPTED = {"disabled": "no TLS", "off": "no TLS", "yes": "TLS", "on": "TLS"}
_STATEMENTS = ("reads", "writes", "other")
MIB = 1 << 20
DIFFERS, UNKNOWN, AS_COMPARED = "no", "can't be said", "as its engine is compared"


def describe_setup(report_inputs: ReportInputs) -> list[str]:
    """Setup by facts.json and dataset.json; nothing on parts that they do not hold."""
    arms = list(report_inputs.facts["arms"].values())
    programs = [f"{name} {join_words([*versions])}" for name, versions in _program_versions(arms).items()]
    memory, durability = (_settings_of(report_inputs, about) for about in (_MEMORY, _DURABILITY))
    odd = [
        f"{about} ({memory})" if about == _MEMORY else about
        for about, alike, *_ in _compare_settings(report_inputs)
        if alike == DIFFERS
    ]
    security = (f"durability: {durability}" if durability else "", _describe_encryption(report_inputs))
    lines = (
        f"not alike: {join_words(odd)}" if odd else "",
        ", ".join(programs),
        _describe_machines(arms),
        _describe_data(report_inputs.dataset, memory),
        _statement_mix(report_inputs),
        "; ".join(filter(None, security)),
        describe_loaded(report_inputs.facts),
    )
    return [*filter(None, lines)]


def _describe_encryption(report_inputs: ReportInputs) -> str:
    """Encryption of connections; where it is unknown of one server, nothing is said of any."""
    values = [str(engine.get("tls")).lower() for engine in _engines_by_arm(report_inputs).values()]
    kinds = dict.fromkeys(_ENCRYPTED.get(value, "") for value in values)
    return "" if "" in kinds else join_words([*kinds])


def _describe_machines(arms: Sequence[Mapping[str, Any]]) -> str:
    """Cores and processor of each kind of machine: `2 cores of EPYC`."""
    items = [item for arm in arms for item in (arm.get("machine"), *(arm.get("hosts") or {}).values())]
    machines = dict.fromkeys(
        f"{item['cores']:g}{NBSP}core{'s' if item['cores'] != 1 else ''} of {item['cpu_model']}"
        for item in items
        if item and item.get("cores") and item.get("cpu_model")
    )
    return "; ".join(machines) if len(machines) <= _MOST_MACHINES else f"{len(machines)} kinds of machine"


def _describe_data(dataset: Mapping[str, Any], memory: str) -> str:
    """Size of the data, and the memory for its pages where that is known."""
    rows, tables = (dataset.get(key) for key in ("table_size", "tables"))
    if not tables or not rows:
        return ""
    data = f"{format_count(tables, 'table')} of {rows:,} rows"
    least = f"{tables * rows * ROW_BYTES / MIB:,.0f} MiB"
    return f"{data} (at least {least}) against {memory} of memory for pages" if memory else data


def describe_loaded(facts: Mapping[str, Any]) -> str:
    """Removal of the tables that stay on servers which others run; empty for other sites."""
    kinds = {(arm.get("site") or {}).get("kind") for arm in facts.get("arms", {}).values()}
    left = f"the tables stay on the servers: benchbook down --loaded {facts.get('study')} drops them"
    return left if kinds == {"existing"} else ""


def _settings_of(report_inputs: ReportInputs, about: str) -> str:
    """Settings of all arms in one respect, each once; empty where a server has none that compares."""
    settings = (_read_setting(engine, {}, about) for engine in _engines_by_arm(report_inputs).values())
    texts = dict.fromkeys(text for text, meaning, _ in settings if meaning is not None)
    if about == _MEMORY:
        sizes = [text.rpartition(" = ")[2] for text in texts]
        numbers = [(size, _normalize_value(size)) for size in sizes]
        texts = dict.fromkeys(f"{int(n) / MIB:,.0f} MiB" if n.isdigit() else size for size, n in numbers)
    return join_words([text.removeprefix("not stated: ") for text in texts])


def _statement_mix(report_inputs: ReportInputs) -> str:
    """Shares of reads, writes and other statements (BEGIN, COMMIT) of each workload."""
    if not {"workload", *_STATEMENTS} <= {*report_inputs.runs.columns}:
        return ""
    sums = report_inputs.runs.groupby("workload", observed=True, sort=False)[[*_STATEMENTS]].sum()
    shares = sums[sums.sum(axis=1) > 0].div(sums.sum(axis=1), axis=0) * 100
    label = labels.label_by_name(report_inputs.findings, "workloads")
    mixes = (
        f"{label.get(str(name), name)}: "
        + ", ".join(f"{share:.0f} % {kind}" for kind, share in row.items() if round(share))
        for name, row in shares.iterrows()
    )
    return "; ".join(mixes) if len(shares) <= _MOST_WORKLOADS else ""


def compare_engines(report_inputs: ReportInputs) -> list[Table]:
    """Lay settings of engines side by side by meaning, those first that differ; of one engine those alone."""
    arms = [text_column(report_inputs.named.get(arm, arm)) for arm in _engines_by_arm(report_inputs)]
    rows = _compare_settings(report_inputs)
    return [build_table("settings-beside", rows, of_arms=arms)] if rows else []


def _engines_by_arm(report_inputs: ReportInputs) -> dict[str, Mapping[str, Any]]:
    return {arm: facts["engine"] for arm, facts in report_inputs.facts["arms"].items() if facts.get("engine")}


def _compare_settings(report_inputs: ReportInputs) -> list[list[str]]:
    engines, loads = _engines_by_arm(report_inputs), report_inputs.dataset.get("loads") or {}
    are_several = len({engine["name"] for engine in engines.values()}) > 1
    columns = [loads.get(arm, {}).get("text", {}) for arm in engines]
    rows = []
    for about in descriptors.MEANINGS if engines else ():
        settings = map(_read_setting, engines.values(), columns, itertools.repeat(about))
        texts, meanings, stated = zip(*settings, strict=True)
        alike = UNKNOWN if None in meanings else "yes" if len({*meanings}) == 1 else DIFFERS
        if are_several or (alike == DIFFERS and not any(stated)):
            rows.append([about, alike, *texts])
    return sorted(rows, key=lambda row: (row[1] != DIFFERS, row[1] != UNKNOWN))


def _read_setting(
    engine: Mapping[str, Any], columns: Mapping[str, str], about: str
) -> tuple[str, str | None, bool]:
    """Engine's setting in one respect, its meaning (None: unknown), and if a study sets it."""
    of, settings = descriptors.find_engine(engine["name"]), engine.get("settings") or {}
    compared, values = of.meanings[about], _values_by_name(engine)
    is_stated = any(name in settings for name in compared)
    if about in columns:
        text, due = columns[about], of.text[descriptors.TEXT.index(about)]
        return f"columns = {text}", _name_meaning({"columns": due}, {"columns": (text, text)}), is_stated
    if not compared:
        return "not read" if about in descriptors.TEXT else "nothing that compares", None, False
    text = "; ".join(f"{name} = {values[name][0]}" for name in compared if name in values)
    if not is_stated:
        text = f"not stated: {text or 'as its package has it'}"
    return text, _name_meaning(compared, values), is_stated


def _values_by_name(engine: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Values of an engine's settings as a study asks for them, and as the server has them."""
    unstated, settings = engine.get("unstated", {}), engine.get("settings") or {}
    values = {name: (value, value) for name, value in unstated.items()}
    return values | {name: (of["asked"], of.get("got") or of["asked"]) for name, of in settings.items()}


def _name_meaning(compared: Mapping[str, Any], values: Mapping[str, tuple[Any, Any]]) -> str | None:
    """Values of compared settings in the form that engines share; None if one is not known."""
    if not compared.keys() <= values.keys():
        return None
    got = [_normalize_value(values[name][1]) for name in compared]
    return AS_COMPARED if got == [*map(_normalize_value, compared.values())] else "; ".join(got)


def _normalize_value(value: Any) -> str:
    """Value in the form compared between engines: a size in bytes, words without their spelling."""
    words = str(value).lower().replace("-", " ")
    size = re.fullmatch(r"(\d+)(?: x (\d+))?([kmgt]?)b?", words)
    return str(int(size[1]) * int(size[2] or 1) << 10 * " kmgt".index(size[3] or " ")) if size else words


def _program_versions(arms: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, None]]:
    """Versions of each program in the order of the arms: engine, proxy, sysbench."""
    parts = [arm.get(key) or {} for key in ("engine", "proxy") for arm in arms]
    named = [(product_name(part["name"]), part.get("version")) for part in parts if part.get("name")]
    named += [("sysbench", (arm.get("machine") or {}).get("sysbench")) for arm in arms]
    versions: dict[str, dict[str, None]] = {}
    for name, version in named:
        if version:
            versions.setdefault(name, {})[_shorten_version(str(version))] = None
    return versions


def _shorten_version(version: str) -> str:
    matches = (form.search(version) for form in _VERSIONS)
    return next((match[1] for match in matches if match), version)


def render_files(report_inputs: ReportInputs) -> list[Html]:
    """One block with a folded text for each settings file of the arms; none if none was kept."""
    arms: dict[str, dict[str, None]] = {}
    for arm, facts in report_inputs.facts["arms"].items():
        for _, sha256 in applied_config.find_digests(facts):
            arms.setdefault(sha256, {})[report_inputs.named.get(arm, arm)] = None
    texts = report_inputs.applied.items()
    listed = [(name, text, ", ".join(arms.get(applied_config.digest_text(text), {}))) for name, text in texts]
    return [render_template("applied.html.j2", listed=listed)] if listed else []
