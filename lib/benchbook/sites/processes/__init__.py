"""Processes: started so that none outlives its owner, known again, watched and ended."""
