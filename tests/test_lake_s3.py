"""A lake in S3-compatible storage: the same code, on a server of this machine.

The server is started in the long run only, where `moto[server]` is installed: its start takes longer than all else.
"""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from state_ledger.lake import compaction
from state_ledger.lake.errors import LakeError
from state_ledger.lake.manifest import Options
from state_ledger.lake.place import place_of
from state_ledger.lake.push import push
from state_ledger.lake.reading import Lake
from state_ledger.lake.verification import compare, verify
from tests.conftest import STRESS, free_port, wait_for
from tests.lakes import UTC, change, folders_of_our_own, make_store  # noqa: F401

pytest.importorskip("pyarrow", reason="a lake needs the extra `lake`")


@pytest.fixture(scope="module")
def storage() -> Iterator[str]:
    """What names a bucket of an S3 server, with a %s for the bucket."""
    if not STRESS or find_spec("moto") is None:
        pytest.skip("an S3 server is started in the long run only, where moto[server] is installed")
    port = free_port()
    words = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port))
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/"

    try:
        wait_for(address, server)
        urllib.request.urlopen(urllib.request.Request(f"{address}books", method="PUT"))
        yield f"s3://%s/hermes?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    finally:
        server.kill()
        server.wait()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_a_bucket_is_pushed_to_read_verified_and_cleared(storage: str, tmp_path: Path) -> None:
    path, url = make_store(tmp_path / "state.db"), storage % "books"
    assert push(path, url, host="h", settings=UTC).changed
    assert not push(path, url, host="h", settings=UTC).changed
    change(path, "UPDATE sessions SET title = 'another' WHERE id = 's0'")
    assert push(path, url, host="h", settings=UTC, options=Options(with_messages=True)).changed
    lake = Lake.open(url)
    found = verify(lake)
    compare(lake, [(path, "h", "default")], UTC, found)
    assert found.files > 30 and not found.findings
    (state,) = lake.stores()
    assert lake.local_path(state.files[0]) is None and lake.table(state.files[0]).num_rows == state.files[0].rows
    planned = compaction.plan(lake, grace_s=-60, keep=1)
    assert planned.counts[compaction.MANIFEST] == 1
    compaction.carry_out(lake, planned)
    assert not verify(lake).findings and not compaction.plan(lake, grace_s=-60, keep=1).remove
    lake.place.remove(state.files[0].path)
    (finding,) = verify(lake).findings
    assert finding.what == f"{state.files[0].path} is missing."


def test_a_bucket_that_is_not_there_is_named(storage: str, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"cannot be written to .*bucket does not exist"):
        push(make_store(tmp_path / "state.db"), storage % "elsewhere", host="h", settings=UTC)


def test_a_server_that_is_not_there_is_named() -> None:
    url = f"s3://books/x?endpoint_override=127.0.0.1:{free_port()}&scheme=http&region=us-east-1"
    with pytest.raises(LakeError, match=r"cannot be read .*[Cc]ould not connect"):
        Lake.open(url)


def test_secrets_of_a_url_are_not_shown() -> None:
    place = place_of("s3://me:hidden@books/hermes?region=eu-west-1&endpoint_override=127.0.0.1:9")
    assert place.url == "s3://books/hermes?region=eu-west-1&endpoint_override=127.0.0.1:9"
