"""Thresholds for tests that measure: how busy the machine is with other things is not what they are about."""

LIMITS = {
    **{"steal_pct": 100.0, "steal_in_turns_pct": 100.0, "client_wait": 10.0, "client_cpu": 1.0},
    **{"pause_ms": 60_000.0, "overrun_s": 30.0, "clock_step_s": 60.0, "start_spread_ms": 10_000.0},
}
