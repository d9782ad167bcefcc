"""The method inside a session: pairs, intervals, equivalence, latency, scaling, steady state, stalls."""
