"""Arms on more than one kind of site: parts, order, obstacles, loads, captures, turns."""
