"""What is shipped: an sdist, the wheel built from it, and an import with hardly a dependency."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy
import pytest

import caughtup
import caughtup.models
from caughtup.agents.cli.files import JAR as JAR_NAME
from caughtup.agents.cli.files import shared_files

ROOT = Path(__file__).resolve().parents[1]
SHARE = "caughtup/share/"
#: What stands for the follower's jar, whose own tests compile it.
JAR = b"PK of a jar"
#: What the wheel holds, and what only a checkout has.
PACKAGES = ("agents", "models", "pipelines", "followers")
CHECKOUT_PACKAGES = ("demo", "bench")

IMPORT_ALL = """
import pkgutil
import caughtup.models
for module in pkgutil.walk_packages(caughtup.models.__path__, "caughtup.models."):
    __import__(module.name)
    print(module.name)
print(caughtup.models.__file__)
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build the sdist, and from it the wheel, with a jar to be in it: their paths."""
    out = tmp_path_factory.mktemp("dist")
    jar = tmp_path_factory.mktemp("jar") / "any.jar"
    jar.write_bytes(JAR)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOLLOWER_JAR", str(jar))
        run_build(out)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def run_build(out: Path) -> None:
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)


@pytest.fixture(scope="module")
def shipped(built: tuple[Path, Path]) -> set[str]:
    with zipfile.ZipFile(built[1]) as wheel:
        return set(wheel.namelist())


@pytest.fixture(scope="module")
def unpacked(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the wheel where Python finds it first, and this environment's packages after it."""
    place = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(built[1]) as wheel:
        wheel.extractall(place)
    return place


def ask(unpacked: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "caughtup.agents", *command],
        cwd=unpacked,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def sources() -> set[str]:
    """Name the files of the packages in the checkout, as they are to be installed."""
    return {
        f"caughtup/{file.relative_to(ROOT)}"
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file()
        and not any(
            part == "__pycache__" or part[0] == "." for part in file.relative_to(ROOT).parts
        )
    }


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(
    shipped: set[str], sources: set[str]
) -> None:
    installed = {
        name for name in shipped if ".dist-info/" not in name and not name.startswith(SHARE)
    }
    assert installed == sources | {"caughtup/__init__.py", "caughtup/py.typed"}


def test_the_wheel_has_for_others_what_a_checkout_has_and_the_jar(
    built: tuple[Path, Path], shipped: set[str]
) -> None:
    """Byte for byte: the rules, dashboards and documents of this checkout."""
    there = {
        name: path for name, path in shared_files(ROOT / "caughtup").items() if name != JAR_NAME
    }
    assert {"prometheus/caughtup.rules.yml", "docs/topics/examples.json", "Dockerfile"} <= set(
        there
    )
    held = {name.removeprefix(SHARE) for name in shipped if name.startswith(SHARE)}
    assert held == {*there, JAR_NAME}
    with zipfile.ZipFile(built[1]) as wheel:
        for name, path in there.items():
            assert wheel.read(SHARE + name) == path.read_bytes(), name
        assert wheel.read(SHARE + JAR_NAME) == JAR


@pytest.mark.heavy
def test_a_wheel_isnt_built_without_a_jar_that_was_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLLOWER_JAR", str(tmp_path / "missing.jar"))
    with pytest.raises(AssertionError, match=r"missing\.jar is to be in the wheel"):
        run_build(tmp_path)
    assert not list(tmp_path.glob("*.whl"))


def test_the_wheel_holds_the_page_and_says_that_it_is_typed(shipped: set[str]) -> None:
    page = ROOT / "agents/web/static"
    static = {f"caughtup/{f.relative_to(ROOT)}" for f in page.rglob("*") if f.is_file()}
    assert "caughtup/agents/web/static/index.html" in static
    assert static <= shipped
    assert "caughtup/py.typed" in shipped


def test_the_wheel_holds_no_tests_and_no_second_copy_of_a_package(shipped: set[str]) -> None:
    assert {name.split("/")[0].split("-")[0] for name in shipped} == {"caughtup"}
    assert not {name for name in shipped if "test" in Path(name).name}
    assert {name.split("/")[1] for name in shipped if name.startswith("caughtup/")} == {
        *PACKAGES,
        "share",
        "__init__.py",
        "py.typed",
    }


def test_the_wheel_says_its_version_its_command_and_its_license(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        (info,) = {n.split("/")[0] for n in wheel.namelist() if ".dist-info/" in n}
        metadata = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
        entry_points = wheel.read(f"{info}/entry_points.txt").decode()
        assert f"{info}/licenses/LICENSE" in wheel.namelist()
    assert metadata["Version"] == caughtup.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert "caughtup = caughtup.agents.main:program" in entry_points


def test_no_dependency_is_bound_to_an_address(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        (name,) = (n for n in wheel.namelist() if n.endswith("/METADATA"))
        required = email.message_from_bytes(wheel.read(name)).get_all("Requires-Dist", [])
    assert required
    assert not [requirement for requirement in required if "@" in requirement]


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        (["demo"], "make demo"),
        (["demo", "--scripted", "--help"], "make demo"),
        (["bench"], "make install && .venv/bin/caughtup bench --help"),
        (["bench", "live", "--groups", "3"], "make install && .venv/bin/caughtup bench --help"),
    ],
)
def test_what_only_a_checkout_has_says_so_in_one_line(
    command: list[str], typed: str, unpacked: Path
) -> None:
    done = ask(unpacked, *command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"caughtup: `caughtup {command[0]}` needs a checkout, since a wheel is made without it: "
        f"git clone caughtup's repository and type there: {typed}\n"
    )


def test_a_wheels_help_lists_what_it_has_and_nothing_else(unpacked: Path) -> None:
    there, here = ask(unpacked, "--help"), ask(ROOT, "--help")
    assert there.returncode == here.returncode == 0
    missing = set(here.stdout.splitlines()) - set(there.stdout.splitlines())
    assert sorted(line.split()[0] for line in missing) == ["bench", "demo"]
    assert set(there.stdout.splitlines()) < set(here.stdout.splitlines())


def test_a_wheel_writes_its_files(unpacked: Path, tmp_path: Path) -> None:
    done = ask(unpacked, "files", "--to", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / JAR_NAME).read_bytes() == JAR


@pytest.mark.heavy
def test_every_module_of_a_wheel_is_imported_without_a_checkout(unpacked: Path) -> None:
    walk = (
        "import caughtup, importlib, pkgutil\n"
        "for one in pkgutil.walk_packages(caughtup.__path__, 'caughtup.'):\n"
        "    if not one.name.endswith(('__main__', '.msk')):  # no lock has Amazon's signer\n"
        "        importlib.import_module(one.name)\n"
        "print(caughtup.__file__)"
    )
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    done = subprocess.run(
        [sys.executable, "-c", walk],
        cwd=unpacked,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.splitlines()[-1]).is_relative_to(unpacked)


def test_the_sdist_holds_the_tests_and_what_they_read(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as sdist:
        held = {"/".join(name.split("/")[1:]) for name in sdist.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "Makefile", "requirements.lock"} <= held
    assert {"tests/test_packaging.py", "models/.ruff.toml", "agents/web/static/index.html"} <= held
    for package in CHECKOUT_PACKAGES:
        files = {str(one.relative_to(ROOT)) for one in (ROOT / package).rglob("*.py")}
        assert files
        assert files <= held
    scripts = [one for one in (ROOT / "scripts").rglob("*.*") if one.suffix != ".pyc"]
    assert {str(one.relative_to(ROOT)) for one in scripts} <= held
    assert not {name for name in held if name.startswith((".venv", ".git/", "artifacts"))}


@pytest.mark.heavy
def test_the_models_need_nothing_installed_but_numpy_and_msgspec(
    built: tuple[Path, Path], sources: set[str], tmp_path: Path
) -> None:
    """Installed without dependencies, into an environment that has only these two."""
    run(sys.executable, "-m", "venv", "--without-pip", "empty", cwd=tmp_path)
    (packages,) = (tmp_path / "empty" / "lib").glob("python*/site-packages")
    installed = Path(numpy.__file__).parent.parent
    for name in ("numpy", "numpy.libs", "msgspec"):
        if (installed / name).exists():
            (packages / name).symlink_to(installed / name)
    python = tmp_path / "empty" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "--no-deps", "--no-index", "--no-compile", built[1], cwd=tmp_path)
    *imported, where = run(python, "-I", "-c", IMPORT_ALL, cwd=tmp_path).split()
    assert Path(where).is_relative_to(tmp_path / "empty")
    models = {name for name in sources if name.startswith("caughtup/models/")}
    assert len(imported) == len([name for name in models if name.endswith(".py")]) - 1
    assert "caughtup.models.polls.batch" in imported


def test_the_suite_runs_on_the_checkout_itself(tmp_path: Path) -> None:
    assert caughtup.models.__file__ is not None
    assert Path(caughtup.models.__file__).is_relative_to(ROOT)
    where = run(
        sys.executable, "-c", "import caughtup.models as m; print(m.__file__)", cwd=tmp_path
    ).strip()
    assert Path(where).resolve() == ROOT / "models" / "__init__.py"
