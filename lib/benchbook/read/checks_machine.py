"""Checks V14 to V21: other activity during a run, and tracing, stopping or robbing of the run."""

from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.core.artifacts.bottlenecks import CLIENT_USED
from benchbook.core.artifacts.run_folder import ForeignActivity
from benchbook.core.study import registry
from benchbook.core.study.params import Limits
from benchbook.core.study.study_arm import Load, Neighbour
from benchbook.read import checks_server
from benchbook.read.evidence import Evidence

MIB = 1024 * 1024
LEAST_SHORT = 0.95
"""Share of the short connections asked for below which a run is not what was asked."""


def check_alone(run: Evidence, limits: Limits) -> Iterator[str]:
    """V14: no other session used the server, in the run and since the one before, and no stranger
    traced or stopped the arm's processes, or lost their packets."""
    if sessions := run.get("foreign_sessions"):
        yield f"{sessions} foreign sessions on the server"
    yield from check_strangers(run)
    yield from checks_server.check_between(run)


def check_client(run: Evidence, limits: Limits) -> Iterator[str]:
    """V15: sysbench got the cores it asked for and had some to spare.

    In turns who else wants the client's cores takes them from all arms alike, so only their use is judged.
    """
    # In turns the client stands still most of the time, which is no rest for a core that it lacks.
    seconds = run.active_s if run.is_in_turns else run.get("sysbench_s")
    if not seconds:
        what = "no turn of its arm was taken" if run.is_in_turns else "sysbench ran for 0 s"
        yield f"{what}, so what the client had of its cores is not known"
        return
    # A starved client also takes long to begin; threads that are not there yet don't wait.
    ran = min(seconds, (run.log.final and run.log.final.total_time_s) or seconds)
    waited = run.get("client", "runqueue_wait_s") / (run.get("client", "threads") * ran)
    used = run.get("client", "cpu_s") / (run.get("client", "allowance_cores") * seconds)
    if waited > limits.client_wait and not run.is_in_turns:
        yield f"client threads waited {waited:.2f} s for a core each second, at most {limits.client_wait:g} s"
    if used >= limits.client_cpu:
        yield f"{CLIENT_USED} {100 * used:.0f} % of its cores, less than {100 * limits.client_cpu:g} %"


def check_machine(run: Evidence, limits: Limits) -> Iterator[str]:
    """V16: no more time stolen than the limits allow, no process killed for memory, no step of the clock.

    In turns the arms of a group share each second of what the host takes, so more of it is allowed.
    """
    steal, killed, step = run.get("steal_pct"), run.get("oom_kills"), run.get("clock_step_s")
    most = limits.steal_in_turns_pct if run.is_in_turns else limits.steal_pct
    if steal > most:
        yield f"{steal:.1f} % of the machine's time was stolen, at most {most:g} %"
    if killed:
        yield f"{killed} processes were killed for lack of memory"
    if abs(step) > limits.clock_step_s:
        yield f"the clock stepped by {step:.2f} s, at most {limits.clock_step_s:g} s"


def server_log(run: Evidence, limits: Limits) -> Iterator[str]:
    """V17: no new error in the server's log."""
    yield from (f"the server's log says {line[:160]!r}" for line in run.get("server_log_errors"))


def check_encryption(run: Evidence, limits: Limits) -> Iterator[str]:
    """V18: connections were encrypted if, and only if, the plan asks for it."""
    request, cipher = run.get("tls", "asked"), run.get("tls", "cipher")
    if (request == "off") == bool(cipher):
        yield f"encryption {request} asked, the cipher is {cipher or 'none'}"
    if run.has_counter("Ssl_accepts"):
        accepted = run.grown("Ssl_accepts")
        due = 0 if request == "off" else sum(evidence.plan_value("threads") for evidence in run.served)
        if accepted != due:
            yield f"encryption {request} asked, {accepted} connections were encrypted"


def check_disk(run: Evidence, limits: Limits) -> Iterator[str]:
    """V19: the files are those that were written, with room left on the disk."""
    yield from run.broken
    for when in () if run.broken else ("before", "after"):
        if (free := run.get(f"free_bytes_{when}") / MIB) < limits.free_mib:
            yield f"{free:.0f} MiB free {when} the run, at least {limits.free_mib} MiB"


def check_pauses(run: Evidence, limits: Limits) -> Iterator[str]:
    """V20: the client's machine never stood still; in turns V23 looks at the length of each."""
    if not run.is_in_turns and (pause := run.get("longest_pause_ms")) > limits.pause_ms:
        yield f"the machine paused for {pause:.0f} ms, at most {limits.pause_ms:g} ms"


def check_arrangement(run: Evidence, limits: Limits) -> Iterator[str]:
    """V21: connections took the service's rule, and neighbour, load and capture were there to the end.

    Arms without any of these have nothing to show.
    """
    run.require_record()
    observed = run.observed.get("arrangement") or {}
    if "service" in observed:
        took, threads = observed["service"]["connections"], run.plan_value("threads")
        if took < threads:
            yield f"{took} of {threads} connections took the service's rule"
    if "neighbour" in observed and not observed["neighbour"]["stayed"]:
        yield "the neighbour ended before the run did"
    if "load" in observed:
        yield from _load_faults(observed["load"])
    if "capture" in observed and not observed["capture"]["stayed"]:
        yield f"the capture ended before the run did: {observed['capture'].get('error') or 'no reason'}"
    yield from _check_arm(run, observed)


def _check_arm(run: Evidence, observations: Mapping[str, Any]) -> Iterator[str]:
    """Differences of a run's arm from its plan: such a run may be another arm's."""
    request, signs = run.plan.get("arm_setting") or {}, run.observed.get("identity_before") or {}
    pairs = {key: (bool(request.get(key)), key in observations) for key in ("load", "capture", "neighbour")}
    if "place" in signs:
        # Here the kernel tells of more.
        pairs["service"] = request.get("access") in registry.THROUGH_SERVICE, "service" in observations
        pairs["network: pod"] = request.get("network") == "pod", "namespace" in signs
    for key, (is_due, is_there) in pairs.items():
        if is_due != is_there:
            excess = f"there was {key}, and the arm does not ask for it"
            yield f"the arm asks for {key}, and there was none" if is_due else excess
    if all(pairs["neighbour"]):
        due, had = Neighbour(**request["neighbour"]), observations["neighbour"]
        if (had["threads"], had["shares"]) != (due.processes, due.shares):
            shown = f"{had['threads']} threads of weight {had['shares']}"
            yield f"the neighbour had {shown}, the arm asks for {due.processes} of {due.shares}"
    if all(pairs["load"]):
        wanted, parts = Load(**request["load"]), {"idle": {}, "short": {}} | observations["load"]
        idle, short = parts["idle"].get("asked", 0), parts["short"].get("asked_per_s", 0)
        if (idle, short) != (wanted.idle_connections, wanted.new_connections_per_s):
            yield f"there were {idle} idle and {short} new connections a second, the arm asks for others"


def _load_faults(load: dict[str, Any]) -> Iterator[str]:
    """Faults of connections beside a run against those of the plan, by driver's and server's word."""
    text = f" ({load['error']})" if load.get("error") else ""
    if not load["stayed"]:
        yield "the driver of connections ended before the run did"
    if "idle" in load:
        yield from _idle_faults(load, text)
    if "short" in load:
        request, achieved = load["short"]["asked_per_s"], load["short"]["achieved_per_s"] or 0.0
        if achieved < LEAST_SHORT * request:
            yield f"{achieved:.1f} short connections a second, {request} asked{text}"


def _idle_faults(load: dict[str, Any], text: str) -> Iterator[str]:
    idle = load["idle"]
    for when, count in (("before", idle["opened"]), ("after", idle["held"])):
        if count != idle["asked"]:
            yield f"{count} of {idle['asked']} idle connections were open {when} the run{text}"
        counted = load.get(f"sessions_{when}")
        # Ours that asks is one more.
        if not (counted or 0) > idle["asked"]:
            yield f"the server had {counted} sessions {when} the run, {idle['asked']} idle ones"


AGAIN_SHARE, AGAIN_LEAST = 1e-4, 20
"""Share of segments, and how many, from which they are lost; a busy machine sends up to 14 again in a run."""
HERE = {"machine"}
"""The machines of a run that is on one of them."""


def check_strangers(run: Evidence) -> Iterator[str]:
    """Foreign actions on the arm's processes and packets in the run, and tracers at its ends."""
    activities, turns = _by_machine(run), run.observed.get("turns") or {}
    for when in ("before", "after"):
        for part, place in sorted((run.observed.get(f"identity_{when}") or {}).items()):
            if part.endswith("_place") and isinstance(place, dict) and place.get("traced"):
                yield f"{part.removesuffix('_place')} was traced by {place['traced']} {when} the run"
    for machine, activity in activities.items():
        yield from _foreign_actions(activity, run.is_in_turns, _machine_suffix(machine))
    if halted := turns.get("halted"):
        yield f"at the end of {halted} of its {turns['count']} turns a part of the arm stood still"
    if activities.keys() == HERE and (lost := _describe_retransmissions(activities["machine"])):
        yield f"{lost}, at most {100 * AGAIN_SHARE:g} %"


def _foreign_actions(activity: ForeignActivity, is_in_turns: bool, where: str) -> Iterator[str]:
    yield from (f"the {part} was traced by {by}{where}" for part, by in sorted(activity.traced.items()))
    stopped = [] if is_in_turns else sorted({*activity.continued, *activity.stopped})
    yield from (f"the {part} was stopped in the run{where}" for part in stopped)
    for part, limits in sorted(activity.limits.items()):
        for limit in sorted({*limits} - {*activity.limits[""]}):
            yield f"the {part} was under {limit}{where}, which neither its arm nor its stage has"


def describe_near_strangers(run: Evidence) -> Iterator[str]:
    """Foreign actions that may have touched the arm, though nothing shows that they did."""
    activities = _by_machine(run)
    for machine, activity in activities.items():
        where, whose = _machine_suffix(machine), "of which processes, the kernel does not say"
        yield from (f"{name} counted events of performance{where}; {whose}" for name in activity.counting)
        yield from _describe_limits(activity, where)
        for network in activity.each:
            its = f"in the network of {' and '.join(network.parts)}{where}"
            if network.rules:
                yield f"{network.rules} rules of the firewall that are not ours {its}"
            if network.dropped:
                yield f"rules of the firewall dropped {network.dropped} packets {its}"
        if activities.keys() != HERE and (lost := _describe_retransmissions(activity)):
            yield f"{lost}{where}"


def _describe_limits(activity: ForeignActivity, where: str) -> Iterator[str]:
    for limit in activity.limits.get("", ()):
        free = sorted(part for part, limits in activity.limits.items() if limit not in limits)
        but = f", but for {' and '.join(free)}" if free else ""
        yield f"all ran under {limit}{where}, which no arm asks for{but}"
    for group, held in sorted(activity.held_back.items()):
        if held["periods"]:
            yield f"the CPU quota of {group} held the run back for {held['seconds']:.2f} s{where}"
        if held["memory"]:
            yield f"the memory limit of {group} was met {held['memory']:g} times{where}"


def _by_machine(run: Evidence) -> dict[str, ForeignActivity]:
    strangers = run.observed.get("strangers") or {}
    return {name: ForeignActivity.of(item) for name, item in sorted(strangers.items())}


def _describe_retransmissions(activity: ForeignActivity) -> str | None:
    """Number of segments of an arm's connections sent again; None if no more than chance."""
    connections = activity.connections or {}
    alone = [(network.sent, network.again) for network in activity.each if not network.is_shared]
    for count in ((connections.get("sent"), connections.get("again")), *alone):
        sent, again = (number or 0 for number in count)
        if again >= AGAIN_LEAST and again > AGAIN_SHARE * sent:
            return f"{again} of {sent} segments were sent again ({100 * again / sent:.2f} %)"
    return None


def _machine_suffix(machine: str) -> str:
    return "" if machine in HERE else f" ({machine})"
