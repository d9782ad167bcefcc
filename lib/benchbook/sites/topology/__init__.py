"""What arms need on more than one kind of site: parts and their order, obstacles, loads, captures, turns."""
