"""``caughtup files``: the installation's files: rules, dashboards, docs, the follower."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import click

import caughtup
from caughtup.agents.cli.commands import examples
from caughtup.agents.errors import UserError

JAR = "caughtup-follower.jar"
_PACKAGE = Path(caughtup.__file__).parent
_NO_JAR = f"{JAR} is not in this installation: `make wheel` makes one that has it"


@click.command(
    short_help="Write rules, dashboards, docs and the follower into a directory.",
    epilog=examples("caughtup files --list", "caughtup files --to /etc/caughtup"),
)
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option(
    "--to",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where to write them; created if it does not exist.",
)
@click.option("--list", "listing", is_flag=True, help="Print their names, and write nothing.")
@click.option("--force", is_flag=True, help="Overwrite existing files whose content differs.")
def files(patterns: tuple[str, ...], directory: Path | None, listing: bool, force: bool) -> None:
    """Write the files of this installation into a directory, and print their names.

    Alert rules, Grafana's dashboards, documents, an example of the settings, the container's
    definition, the follower's jar. A PATTERN is a name, a folder, or contains *; without a pattern,
    all files are written. An existing file that differs is overwritten only with --force.
    """
    if listing == (directory is not None):
        raise click.UsageError("either --to DIR or --list is needed")
    found = shared_files(_PACKAGE)
    chosen = {name: path for name, path in found.items() if _matches(name, patterns)}
    for pattern in patterns:
        if not any(_matches(name, [pattern]) for name in found):
            if _matches(JAR, [pattern]):
                raise UserError(_NO_JAR)
            raise UserError(f"there is no file {pattern}; `caughtup files --list` has their names")
    if directory is None:
        for name in chosen:
            click.echo(name)
    else:
        _write_all(chosen, directory, force)
    if not patterns and JAR not in found:
        click.echo(f"caughtup: {_NO_JAR}", err=True)


def shared_files(package: Path) -> Mapping[str, Path]:
    """Return the files to share of a package, by the names under which they are written.

    A wheel has them in ``share``, a checkout where pyproject.toml says, and the jar once it is
    built. Raises UserError if it has neither, as in a wheel that isn't unpacked.
    """
    if (share := package / "share").is_dir():
        return dict(sorted(_below(share, share)))
    checkout = package.resolve().parent
    try:
        project = tomllib.loads((checkout / "pyproject.toml").read_text())
    except OSError:
        raise UserError(f"there are no files to copy beside {package}: install the wheel") from None
    build = project["tool"]["hatch"]["build"]
    names = build["targets"]["wheel"]["hooks"]["custom"]["share"]
    found = {name: path for wanted in names for name, path in _below(checkout, checkout / wanted)}
    if (jar := checkout / "build" / JAR).is_file():
        found[JAR] = jar
    return dict(sorted(found.items()))


def _below(root: Path, path: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            yield file.relative_to(root).as_posix(), file


def _matches(name: str, patterns: tuple[str, ...] | list[str]) -> bool:
    paths = (name, *map(str, PurePosixPath(name).parents))
    wanted = [pattern.rstrip("/") for pattern in patterns]
    return not wanted or any(fnmatchcase(path, one) for path in paths for one in wanted)


def _write_all(chosen: Mapping[str, Path], directory: Path, force: bool) -> None:
    """Write all files, or none if one would be overwritten. Raises UserError."""
    try:
        contents = {directory / name: path.read_bytes() for name, path in chosen.items()}
        existing = {path for path in contents if path.exists() or path.is_symlink()}
        same = {path for path in existing if path.is_file() and path.read_bytes() == contents[path]}
        if (differing := sorted(existing - same)) and not force:
            more = f" and {len(differing) - 1} more" if len(differing) > 1 else ""
            raise UserError(
                f"{differing[0]}{more}: exists already with other content; nothing was written; "
                "--force overwrites"
            )
        for path, content in contents.items():
            if path not in same:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            click.echo(f"{'unchanged' if path in same else 'wrote'} {path}")
    except OSError as problem:
        raise UserError(f"cannot write {problem.filename}: {problem.strerror}") from problem
