"""One source, two ways to start: a wheel, and `datasette serve .` in a checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
FOLDERS = ("plugins", "canned_queries", "templates", "static")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, unpacked as an installer would lay it out."""
    target = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)],
        cwd=CHECKOUT, check=True, capture_output=True,
    )  # fmt: skip
    unpacked = target / "site"
    with zipfile.ZipFile(next(target.glob("*.whl"))) as archive:
        archive.extractall(unpacked)
    return unpacked


def _datasette(folder: Path, *arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"PYTHONPATH": str(path)} if path else {})}
    return subprocess.run(
        [sys.executable, "-m", "datasette", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_wheel_holds_each_folder_once_and_whole(wheel: Path, folder: str) -> None:
    source = {
        str(path.relative_to(CHECKOUT / folder))
        for path in (CHECKOUT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {str(p.relative_to(wheel / "state_ledger" / folder)) for p in (wheel / "state_ledger" / folder).rglob("*")
              if p.is_file()}  # fmt: skip
    assert packed - {"__init__.py"} == source
    assert not (wheel / folder).exists()
    assert (wheel / "state_ledger" / "metadata.yaml").is_file()
    assert (wheel / "state_ledger" / "py.typed").is_file()


def test_the_wheel_serves_a_store_with_nothing_else_on_the_command_line(
    wheel: Path, demo_store: Path, tmp_path: Path
) -> None:
    for path in ("/demo", "/demo/cost_per_model.json?_shape=objects", "/demo/-/cost"):
        served = _datasette(tmp_path, "serve", str(demo_store), "--get", path, path=wheel)
        assert served.returncode == 0, served.stderr
        assert "Cost" in served.stdout or '"ok": true' in served.stdout
    found = subprocess.run(
        [sys.executable, "-c", "import state_ledger; print(state_ledger.__file__)"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(wheel)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert str(wheel) in found.stdout


def test_serving_the_checkout_loads_nothing_twice() -> None:
    served = _datasette(CHECKOUT, "serve", ".", "--get", "/-/plugins.json")
    assert served.returncode == 0, served.stderr
    listed = json.loads(served.stdout)
    names = [entry["name"] for entry in (listed if isinstance(listed, list) else listed["plugins"])]
    ours = {path.name for path in (CHECKOUT / "plugins").glob("*.py")}
    assert not ours & set(names)  # what the folder loader registers is listed under its file's name
    assert Counter(names)["state-ledger"] == len(ours)


def test_every_plugin_file_has_an_entry_point_of_its_name() -> None:
    text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    for path in (CHECKOUT / "plugins").glob("*.py"):
        assert f'"{path.name}" = "state_ledger.plugins.{path.stem}"' in text


@pytest.mark.parametrize("path", sorted((CHECKOUT / "plugins").glob("*.py")), ids=lambda path: path.name)
def test_a_plugin_file_can_be_run_as_the_folder_loader_does(path: Path) -> None:
    """Datasette executes each file of `plugins/` as a module that `sys.modules` does not have."""
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": f"not-imported-{path.stem}"})


def test_the_core_knows_no_web() -> None:
    folder = CHECKOUT / "state_ledger"
    files = [path.relative_to(CHECKOUT).with_suffix("").parts for path in folder.rglob("*.py")]
    names = [".".join(parts).removesuffix(".__init__") for parts in files if parts[1] not in ("plugins", "cli")]
    assert len(names) > 200
    code = f"import sys\nfor name in {names}: __import__(name)\nsys.exit('datasette' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT).returncode == 0
