"""The method over sessions: random effects, prediction intervals, cross-study rows, sample size."""
