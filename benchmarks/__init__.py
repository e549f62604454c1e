"""What state-ledger costs beside the bare thing, as ratios measured in one run, and how it grows with the store.

`python -m benchmarks --size S` measures, prints a report and ends with status 1 if a target is missed.
RESULTS.md is the report of the kept figures; docs/performance.md explains them.

`targets` says what is promised, `parts` what is measured; each part is a module that gives figures. `run` measures
parts within their time, `report` and `growth_table` write. `sizes` and `store` are the stores.
"""
