"""Simulated machines: how the speed of one machine wanders while it is being measured.

The log of the speed is a sum of a drift, of slow episodes (somebody else's load: minutes at a time), of a
deviation that lasts from one start of an arm to the next, and of noise. The sizes are those seen on shared
virtual machines: Maricq and others, Taming Performance Variability (OSDI 2018); Abedi and Brecht,
Conducting Repeatable Experiments in Highly Variable Cloud Computing Environments (ICPE 2017).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

STEP_S = 15
HOUR_S = 3600


@dataclass(frozen=True)
class Scenario:
    """One kind of machine; all sizes are standard deviations of log speed (0.05 is about 5 %).

    `drift` wanders with the time constant `memory_s`; `kind` is wander, walk (no way back, `drift` an hour)
    or ramp (slower by `drift` an hour). `episodes` an hour last `episode_s` on average and cost
    `depth` on average. `restart` differs from deployment to deployment, `run` from run to run, `second` from
    second to second.
    """

    name: str
    drift: float = 0.0
    memory_s: float = HOUR_S
    kind: str = "wander"
    episodes: float = 0.0
    episode_s: float = 300.0
    depth: float = 0.0
    restart: float = 0.0
    run: float = 0.0
    second: float = 0.10


NOISY = Scenario("noisy, 10 % drift", 0.10, episodes=0.5, depth=0.05, restart=0.005, run=0.005, second=0.15)
SCENARIOS = (
    Scenario("quiet, 1 % drift", 0.01, restart=0.003, run=0.003),
    replace(NOISY, name="mild, 5 % drift", drift=0.05, episodes=0.25, depth=0.03),
    NOISY,
    replace(NOISY, name="bad, 15 % drift", drift=0.15, episodes=1.0, depth=0.10),
    replace(NOISY, name="noisy, drift of 10 minutes", memory_s=600.0),
    replace(NOISY, name="noisy, drift of 4 hours", memory_s=4.0 * HOUR_S),
    replace(NOISY, name="noisy, random walk", kind="walk", drift=0.07),
    replace(NOISY, name="noisy, ramp", kind="ramp"),
    replace(NOISY, name="noisy, restarts 3 %", restart=0.03),
    Scenario("no drift, restarts 1 %", restart=0.01, run=0.005, second=0.15),
    Scenario("no drift, white noise only", second=0.15),
)


def speed(scenario: Scenario, campaigns: int, steps: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Return log speed by campaign and step of 15 s: drift and slow episodes, noise not yet added."""
    if scenario.drift == 0.0 and scenario.episodes == 0.0:
        return np.zeros((campaigns, steps))
    return _drift(scenario, campaigns, steps, random) - _episodes(scenario, campaigns, steps, random)


def _drift(
    scenario: Scenario, campaigns: int, steps: int, random: np.random.Generator
) -> NDArray[np.float64]:
    if scenario.kind == "ramp":
        # Down in one half of the campaigns and up in the other, so that it is an error and no bias.
        slope = np.where(np.arange(campaigns) % 2, 1.0, -1.0)[:, None] * scenario.drift * STEP_S / HOUR_S
        small = replace(scenario, kind="wander", drift=scenario.drift / 3)
        return slope * np.arange(steps) + _drift(small, campaigns, steps, random)
    shocks = random.standard_normal((campaigns, steps))
    if scenario.kind == "walk":
        return np.cumsum(shocks, axis=1) * scenario.drift * np.sqrt(STEP_S / HOUR_S)
    # Half a second to import, for one kind of machine alone.
    from scipy.signal import lfilter

    # An Ornstein-Uhlenbeck process, begun in its stationary state.
    keeps = np.exp(-STEP_S / scenario.memory_s)
    shocks[:, 1:] *= np.sqrt(1 - keeps**2)
    return scenario.drift * lfilter([1.0], [1.0, -keeps], shocks, axis=1)


def _episodes(
    scenario: Scenario, campaigns: int, steps: int, random: np.random.Generator
) -> NDArray[np.float64]:
    """Return how much slower each step is; an episode begins and ends at any step by chance."""
    begins = scenario.episodes * STEP_S / HOUR_S
    ends = STEP_S / scenario.episode_s
    slower = np.zeros((campaigns, steps))
    if not begins:
        return slower
    depth = np.where(
        random.random(campaigns) < begins / (begins + ends),
        random.exponential(scenario.depth, campaigns),
        0.0,
    )
    chance = random.random((steps, campaigns))
    for step in range(steps):
        starting = (depth == 0.0) & (chance[step] < begins)
        depth[(depth > 0.0) & (chance[step] < ends)] = 0.0
        if starting.any():
            depth[starting] = random.exponential(scenario.depth, int(starting.sum()))
        slower[:, step] = depth
    return slower
