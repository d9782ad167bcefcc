"""Claims: the quantities that a published sentence is about, and their values in any cells.

`bands` says where a number must lie, `kinds` what each kind of claim asks of which cells, `judge` what comes
out. Cells have two makers: `printed` takes them from a document's tables, `measured` from a study's blocks.
`effects` are the claims that a study's findings answer, `grades` what carries over from its author's machine.
"""
