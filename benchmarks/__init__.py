"""What state-ledger costs beside the same SQL on bare SQLite, as ratios measured in one run.

`python -m benchmarks` measures, prints a table and ends with status 1 if a figure is over its
target. docs/performance.md explains the figures.
"""
