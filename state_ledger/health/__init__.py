"""Whether a store is well: what is wrong with it, how bad that is, and which command mends it.

`checkup.check(path)` looks at a file by itself; `checkup.glance(…)` and `checkup.examine(…)` look over a
connection that somebody has already. Nothing here writes.
"""
