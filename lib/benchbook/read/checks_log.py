"""Checks V1 to V9: a run by sysbench's own output and exit, and by its command line, which has all."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from benchbook.core.study import client_sharding, interleaving, registry, sysbench_options
from benchbook.core.study.params import Limits
from benchbook.read import checks_cluster, checks_custom_scripts
from benchbook.read.evidence import Evidence, Missing
from benchbook.read.log import Concern, require_printed

OVERRUN_SHARE = 0.02
"""A run may end late by this share of its length, if that is more than `overrun_s`."""
AFTER_TURNS_S = 1.0
"""Seconds for which a client may stand still at the end of its time, until that of all clients is over."""
RARE_EVENTS = 20
"""With fewer offered transactions an interval, one without any is chance."""
BACKLOG_S = 0.05
"""Longest queue at the edges of the measured window, in seconds of offered transactions."""
ARRIVAL_SPREAD = 3.0
"""Standard deviations that the number of random arrivals may be off."""


def exit_code(run: Evidence, limits: Limits) -> Iterator[str]:
    """V1: sysbench ended by itself, with 0."""
    code, ended_by = run.get("exit_code"), run.get("ended_by")
    if code != 0:
        yield f"exit code {code}"
    if ended_by != "itself":
        yield f"ended by {ended_by}"


def check_stderr(run: Evidence, limits: Limits) -> Iterator[str]:
    """V2: nothing on stderr."""
    if run.err is None:
        raise Missing("no file of stderr")
    if run.err:
        yield f"stderr says {run.err.strip()[:120]!r}"


def check_stdout(run: Evidence, limits: Limits) -> Iterator[str]:
    """V3: every line of stdout known and in place, to the end, and no message among them."""
    yield from _list_problems(run, "message", "grammar", "end")
    for message in run.log.messages:
        if message.level not in ("fatal", "alert"):
            yield f"line {message.line}: {message.text[:120]!r}"


def check_totals(run: Evidence, limits: Limits) -> Iterator[str]:
    """V4: totals of the discard and of the window, the latter with a histogram, and sums that add up."""
    # In turns report lines may be left out (V7), so that their sum says nothing.
    yield from _list_problems(run, *(("numbers",) if run.is_in_turns else ("numbers", "sums")))
    request = 1 if run.clock_s[0] else 0
    if len(run.log.checkpoints) != request:
        yield f"{len(run.log.checkpoints)} checkpoint blocks, {request} expected"
    if run.log.final is None:
        yield "no last totals"
    elif run.log.histogram is None and run.plan.get("histogram", True):
        yield "no histogram"


def check_options(run: Evidence, limits: Limits) -> Iterator[str]:
    """V5: header, command line and options file have the planned values, and sysbench took them."""
    header, final = run.log.header, run.log.final
    if "seed" not in run.plan:
        raise Missing("plan has no seed")
    discard = run.clock_s[0]
    pairs = [
        ("threads", header.threads, run.plan_value("threads")),
        ("rate", header.rate, run.plan.get("rate") or 0),
        ("report interval", header.interval_s or 0, run.plan.get("interval_s", 1)),
        ("checkpoints", header.checkpoints_s, (discard,) if discard else ()),
        ("seed", header.seed, run.plan["seed"]),
        ("percentile", getattr(final, "percentile", None), run.plan_value("percentile")),
    ]
    yield from (f"{name} {had}, asked {due}" for name, had, due in pairs if had != due)
    if client_sharding.has_file(run.plan.get("arm_setting")):
        taken = run.get("options", "taken")
        for name, value in run.get("options", "asked").items():
            if taken.get(name) != value:
                yield f"the file says {name}={value}, sysbench took {taken.get(name)}"
    yield from check_command_line(run)
    yield from checks_custom_scripts.check_files(run)


def check_duration(run: Evidence, limits: Limits) -> Iterator[str]:
    """V6: discard and run took the planned time, neither less nor much more.

    In turns a client writes its checkpoint when it goes on: at most one round later, and after the discard of
    the client that started last. It ends when that one's time is over, too.
    """
    discard, length = run.clock_s
    total = require_printed(run.final.total_time_s, "total time")
    apart = started_apart_s(run) if run.is_in_turns else 0.0
    late = max(limits.overrun_s, OVERRUN_SHARE * (discard + length))
    late += AFTER_TURNS_S + apart if run.is_in_turns else 0.0
    if not discard + length <= total <= discard + length + late:
        hanging = _describe_hanging(run, discard + length)
        yield f"total time {total:.4f} s, asked {discard + length} s{hanging}"
    waited = interleaving.round_seconds(run.planned) + apart if run.is_in_turns else 0.0
    latest = discard + max(limits.overrun_s, OVERRUN_SHARE * discard) + waited
    for block in run.log.checkpoints:
        if block.total_time_s is None or not discard <= block.total_time_s <= latest:
            yield f"the discard took {block.total_time_s} s, asked {discard} s"


def _describe_hanging(run: Evidence, end_s: float) -> str:
    """Note on threads in a last transaction, by report lines after the end."""
    seconds, threads = run.log.intervals.column("second"), run.log.intervals.column("threads")
    whole = run.log.header.threads or 0
    late = threads[(seconds > end_s) & (threads < whole)]
    return f": {late[0]:.0f} of {whole} threads were in a last transaction" if late.size else ""


def check_intervals(run: Evidence, limits: Limits) -> Iterator[str]:
    """V7: a report line for every interval (the last may be missing), none of them idle.

    At a fixed rate a second without an answer is idle only if nothing waited for one: where transactions
    queue, the client went on offering them, and the wait is in their latency. In turns a report line may be
    late or left out, since its second may end while the client stands still: there V23 looks at each turn.
    From a planned event on, idle seconds are what is measured.
    """
    if run.is_in_turns:
        return
    yield from _list_problems(run, "intervals")
    step = run.plan.get("interval_s", 1)
    if not step:
        return
    # The last line may be printed while threads leave in time.
    seconds, threads, tps, queue = (
        run.log.intervals.column(name) for name in ("second", "threads", "tps", "queue_length")
    )
    left = (threads < (run.log.header.threads or 0)) & (seconds < sum(run.clock_s))
    if left.any():
        yield f"{threads[left][0]:.0f} threads of {run.log.header.threads} at second {seconds[left][0]:g}"
    due, got = sum(run.clock_s) // step, len(run.log.intervals)
    if got not in (due, due - 1):
        yield f"{got} report lines, {due} or {due - 1} expected"
    rate, is_idle = run.plan.get("rate") or 0, tps == 0
    if rate:
        is_idle &= ~(queue > 0)
    if (killed := checks_cluster.event_at_s(run)) is not None:
        is_idle &= seconds < killed
    idle = [f"{second:g}" for second in seconds[is_idle]]
    if idle and not 0 < rate * step < RARE_EVENTS:
        yield f"no transaction in the interval at second {', '.join(idle)}"


def check_errors(run: Evidence, limits: Limits) -> Iterator[str]:
    """V8: hardly any ignored error, no reconnect."""
    if (ratio := error_ratio(run)) > limits.error_ratio:
        text = f"{100 * ratio:.2f} % ignored errors per transaction, at most {100 * limits.error_ratio:g} %"
        yield f"{text}; raise plan.run_s where it is short, or limits.error_ratio in params.yaml"
    if reconnects := run.total("reconnects"):
        yield f"{reconnects} reconnects"


def check_work(run: Evidence, limits: Limits) -> Iterator[str]:
    """V9: transactions were done, of the script's statements, at the planned rate."""
    if not run.final.transactions:
        yield "no transactions"
        return
    is_custom = checks_custom_scripts.is_custom(run)
    yield from checks_custom_scripts.check_work(run) if is_custom else _check_statements(run)
    yield from _rate_faults(run, limits)


def _check_statements(run: Evidence) -> Iterator[str]:
    transaction, done, spoilt = run.transaction, run.total("transactions"), run.total("ignored_errors")
    if not transaction.reads + transaction.writes:
        yield "the options leave no statement but BEGIN and COMMIT"
    # A transaction that is tried again leaves the statements before its error in the counts.
    whole = transaction.reads + transaction.writes + transaction.other
    for name, each in (("reads", transaction.reads), ("total", whole)):
        count = run.total(name)
        if not each * done <= count <= each * (done + spoilt):
            yield f"{count} {name} in {done} transactions, {each} each expected"
    if transaction.writes and not run.total("writes"):
        yield "no write changed a row"


def error_ratio(run: Evidence) -> float:
    """Ignored errors per transaction, of the whole run or its window, whichever is worse."""
    final = run.final
    whole = _error_ratio(run.total("ignored_errors"), run.total("transactions"))
    errors = require_printed(final.ignored_errors, "ignored errors")
    return max(whole, _error_ratio(errors, require_printed(final.transactions, "transactions")))


def _error_ratio(errors: int, transactions: int) -> float:
    if transactions:
        return errors / transactions
    return math.inf if errors else 0.0


def _rate_faults(run: Evidence, limits: Limits) -> Iterator[str]:
    rate, window = run.plan.get("rate") or 0, run.log.measured_s
    if not rate or not window:
        return
    achieved = require_printed(run.final.transactions, "transactions") / window
    allowed = limits.rate_ratio * rate + ARRIVAL_SPREAD * math.sqrt(rate / window)
    if abs(achieved - rate) > allowed:
        yield f"{achieved:.1f} transactions/s, {rate} asked"
    yield from _backlog_faults(run, rate)


def _backlog_faults(run: Evidence, rate: float) -> Iterator[str]:
    """Faults if transactions queued at the edges of the measured window."""
    edges = [report for report in run.log.intervals if report.second == run.plan_value("discard_s")]
    # The last report line may have lost its queue line to the end of the run.
    ends = [report for report in run.log.intervals[-2:] if report.queue_length is not None]
    for report in (*edges, *ends[-1:]):
        if (report.queue_length or 0) > rate * BACKLOG_S + run.plan_value("threads"):
            yield f"{report.queue_length} transactions were waiting at second {report.second:g}"


def _list_problems(run: Evidence, *concerns: Concern) -> list[str]:
    return [str(problem) for problem in run.log.problems if problem.concern in concerns]


def started_apart_s(run: Evidence) -> float:
    """Seconds from the first to the last client start of a group; 0 if the clock of turns did not say."""
    first, last = run.observed.get("turns", {}).get("clock", {}).get("started") or (0.0, 0.0)
    return float(last - first)


BINARY = "sysbench"
PLACES = {"mysql": ({"mysql-socket"}, {"mysql-host", "mysql-port"}), "pgsql": ({"pgsql-host", "pgsql-port"},)}
ADDRESSES = frozenset[str]().union(*(options for ways in PLACES.values() for options in ways))


def check_command_line(run: Evidence) -> Iterator[str]:
    """Faults if the recorded command line, or the file of options beside it, is not the plan's."""
    argv = run.get("argv")
    inputs = [word[2:].partition("=")[::2] for word in argv if word.startswith("--")]
    setting = run.plan.get("arm_setting") or {}
    has_file = client_sharding.has_file(setting)
    yield from _check_words([word for word in argv if not word.startswith("--")], run, "event" in setting)
    accounts = sum(name == sysbench_options.ACCOUNT for name, _ in inputs)
    if accounts != 1 + has_file:
        yield f"{accounts} options --{sysbench_options.ACCOUNT}, {1 + has_file} expected"
    counts = Counter(name for name, _ in inputs if name != sysbench_options.ACCOUNT)
    yield from (f"--{name} is given twice" for name, count in counts.items() if count > 1)
    general = sysbench_options.general_options(run.planned)
    of_script = sysbench_options.of_script(run.planned)
    if has_file:
        yield from _check_arguments(run.get("options", "asked"), general, run)
        yield from _diff_options(dict(inputs), of_script)
    else:
        yield from _check_arguments(dict(inputs), general | of_script, run)


def _check_words(words: list[str], run: Evidence, has_event: bool) -> Iterator[str]:
    """Fault if the words of a command line that are no options are others than the plan's."""
    script, names = run.plan_value("script"), [PurePosixPath(word).name for word in words[:2]]
    if has_event and len(words) > 1:
        # A script whose server goes away is run by ours.
        words, script = [words[0], names[1], *words[2:]], "reconnecting.lua"
    if [*names[:1], *words[1:]] != [BINARY, script, "run"]:
        yield f"the command is {' '.join(words)!r}, {f'{BINARY} {script} run'!r} asked"


def _check_arguments(results: Mapping[str, str], requests: Mapping[str, str], run: Evidence) -> Iterator[str]:
    """Faults if options differ from the planned ones, among them those for the server's address."""
    place = {name: value for name, value in results.items() if name in sysbench_options.CONNECTION}
    rest = {name: value for name, value in results.items() if name not in place}
    yield from _diff_options(rest, requests)
    driver = sysbench_options.driver_name(run.planned)
    if place.get("db-driver") != driver:
        yield f"--db-driver={place.get('db-driver')}, {driver} expected"
    if place.keys() & ADDRESSES not in PLACES.get(driver, ()):
        yield "the command line names no server, or two"
    is_socket = "mysql-socket" in place or place.get("pgsql-host", "").startswith("/")
    if (run.plan.get("arm_setting") or {}).get("access") == registry.SOCKET and not is_socket:
        yield "the command line names no socket, access: socket asked"
    tls = (run.observed.get("tls") or {}).get("asked")
    if driver == "mysql" and tls is not None and (place.get("mysql-ssl") == "off") != (tls == "off"):
        yield f"--mysql-ssl={place.get('mysql-ssl')}, encryption {tls} asked"


def _diff_options(results: Mapping[str, str], requests: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys([*requests, *results]):
        if name == sysbench_options.ACCOUNT or results.get(name) == requests.get(name):
            continue
        if name not in requests:
            yield f"--{name}={results[name]} is on the command line, and the plan does not ask for it"
        else:
            argument = f"is {results[name]}" if name in results else "is not on the command line"
            yield f"--{name} {argument}, {requests[name]} asked"
