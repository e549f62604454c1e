"""Memory that a big page needed is given back."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import ctypes, sys, threading
from state_ledger import allocator
kept = allocator.keep_one_arena() if sys.argv[1] == "one" else None
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
arenas = set()
def take():
    # Arenas of threads are aligned at 64 MB; the first one is the process's heap.
    arenas.add(libc.malloc(1000) >> 26)
    barrier.wait()
barrier = threading.Barrier(6)
threads = [threading.Thread(target=take) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(kept, len(arenas))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="arenas are glibc's")
def test_threads_share_one_arena() -> None:
    def arenas(how: str) -> tuple[str, int]:
        done = subprocess.run([sys.executable, "-c", CODE, how], capture_output=True, text=True, check=True)
        kept, count = done.stdout.split()
        return kept, int(count)

    kept, count = arenas("one")
    if kept == "False":
        pytest.skip("this C library is not glibc")
    assert count <= 2  # a heap can lie across a boundary
    assert arenas("many")[1] > count
