"""The report of a replay: one HTML file with its plots in it, and nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from caughtup.agents.cli.replay.plots import MEASURES, bars, timeline
from caughtup.agents.cli.replay.tables import ReplayPart, columns, notes

#: More dots than these hide each other, and make a page of megabytes.
_MOST_DOTS = 2_000
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid #8886; text-align: right; }
td { white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
tr.recorded td { font-style: italic; }
svg { max-width: 100%; height: auto; display: block; }
figure { margin: 1.5rem 0; }
figure, div { overflow-x: auto; }
figcaption { font-weight: 600; }
p.note { color: #767676; margin: .3rem 0; }
"""


def report(source: str, parts: Sequence[ReplayPart]) -> str:
    """Write the page. ``source`` is where the recorded generations came from."""
    body = "\n".join(line for part in parts for line in _section(part))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>caughtup replay</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>What other settings would have done</h1>
<p>Recorded generations of {escape(source)}, decided again.</p>
{body}
</body>
</html>
"""


def _section(part: ReplayPart) -> Iterator[str]:
    groups = len({row.group for row in part.rows})
    yield f"<section><h2>{escape(part.group) if part.group else f'{groups:,} groups'}</h2>"
    shown = columns(part)
    yield "<div><table><thead><tr><th>setting</th>"
    yield "".join(f"<th>{escape(name)}</th>" for name in shown) + "</tr></thead><tbody>"
    for one in part.summaries:
        cells = "".join(f"<td>{escape(written(one))}</td>" for written in shown.values())
        kind = ' class="recorded"' if one.recorded else ""
        yield f"<tr{kind}><td>{escape(one.setting)}</td>{cells}</tr>"
    yield "</tbody></table></div>"
    yield from (f'<p class="note">{escape(note)}</p>' for note in notes(part))
    for measure in MEASURES:
        yield _figure(measure.title, bars(measure, part.summaries))
    dots = sum(row.figures is not None for row in part.rows)
    if 0 < dots <= _MOST_DOTS:
        settings = [one.setting for one in part.summaries]
        yield _figure(
            "Each change of membership, in the colours above", timeline(part.rows, settings)
        )
    yield "</section>"


def _figure(title: str, svg: str) -> str:
    return f"<figure><figcaption>{escape(title)}</figcaption>{svg}</figure>"
