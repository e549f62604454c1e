"""`python -m tests.fuzz NAME --seconds 300`: tries one law for a while; without a name lists them.

With atheris (`pip install atheris`), inputs that reach new code are kept and changed further, so that minutes
find what chance does not; without it, hypothesis tries examples of chance. What is found is printed as hypothesis
has it, with the smallest input, to be written down as a test.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings

HERE = Path(__file__).parent


def laws(holding: str = "") -> dict[str, Callable[..., Any]]:
    """The laws of this folder, by name without `test_`; of those files alone that hold a text."""
    found = {}
    for file in sorted(HERE.glob("test_*.py")):
        if holding not in file.read_text(encoding="utf-8"):
            continue
        module = importlib.import_module(f"tests.fuzz.{file.stem}")
        for name, each in vars(module).items():
            if getattr(each, "is_hypothesis_test", False):
                found[name.removeprefix("test_")] = each
    return found


def by_coverage(name: str, seconds: int) -> None:
    """Does not return: atheris ends the process, with a status other than 0 where something was found."""
    import atheris

    with atheris.instrument_imports(include=["state_ledger"]):
        law: Any = laws(f"def test_{name}(")[name]
    corpus = tempfile.mkdtemp(prefix=f"state-ledger-{name}-")
    print(f"Inputs are kept in {corpus}.", flush=True)
    options = ["-max_len=4096", f"-max_total_time={seconds}", "-rss_limit_mb=0", f"-artifact_prefix={corpus}/found-"]
    atheris.Setup([sys.argv[0], *options, corpus], law.hypothesis.fuzz_one_input)
    atheris.Fuzz()


def by_chance(name: str, seconds: int) -> None:
    """Raises what a law raises."""
    law: Any = laws(f"def test_{name}(")[name]
    until = time.monotonic() + seconds
    law._hypothesis_internal_use_settings = settings(
        law._hypothesis_internal_use_settings, max_examples=200, database=None, deadline=None
    )
    while time.monotonic() < until:
        law()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz",
    description="Tries one law on hostile input for a while.")
    parser.add_argument("name", nargs="?", help="the law; without one they are listed")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--chance", action="store_true", help="without atheris, also where it is installed")
    given = parser.parse_args()
    if given.name is None:
        print("\n".join(laws()))
        return
    if not given.chance:
        try:
            by_coverage(given.name, given.seconds)
        except ImportError:
            print("atheris is not installed: examples are of chance.")
    by_chance(given.name, given.seconds)


if __name__ == "__main__":
    main()
