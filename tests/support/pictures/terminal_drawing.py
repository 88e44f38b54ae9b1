"""A terminal as a self-contained SVG: still, or one screen after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme

_GROUND, _INK = (22, 27, 26), (214, 222, 218)


def _rgb(colours: str) -> list[tuple[int, int, int]]:
    return [(one[0], one[1], one[2]) for one in map(bytes.fromhex, colours.split())]


#: The sixteen colours of a terminal, each readable on the background.
_THEME = TerminalTheme(
    _GROUND,
    _INK,
    _rgb("2a322f ff8a7e 5fcaa8 e6bd58 7fb0ff c4a0f0 6ec8d6 d6deda"),
    _rgb("82908a ffa096 82dcbe f5d278 4672b8 d4b6f8 96dae4 f5f8f6"),
)
_CELL, _LINE, _FONT = 8.0, 18.0, 13.2
_PAD, _BAR = 16.0, 34.0
#: The time of a key, of a screen, and of each of its lines, in seconds.
_KEY, _STAYS, _STAYS_A_LINE = 0.045, 3.2, 0.16

Line = Sequence[Segment]


class Screen(NamedTuple):
    """A command that is typed, and the lines that it prints."""

    command: str
    lines: Sequence[Line]


def recording(screens: Sequence[Screen], columns: int, title: str) -> str:
    """Draw screens in a loop; viewers without animation show the first."""
    rows = max(len(screen.lines) for screen in screens) + 1
    ends, end = [], 0.0
    for screen in screens:
        end += _typed(screen) + 0.4 + _STAYS + _STAYS_A_LINE * len(screen.lines)
        ends.append(end)
    styles, drawn, start = [], [], 0.0
    for at, (screen, until) in enumerate(zip(screens, ends, strict=True)):
        styles.append(_frames(at, start, start + 0.2 + _typed(screen), until, end, screen))
        drawn.append(
            f'<g class="s s{at}">{_prompt(screen.command)}'
            f'<g class="o{at}">{"".join(_rows(screen.lines, first=1))}</g></g>'
        )
        start = until
    calm = "@media (prefers-reduced-motion: reduce) { .s, .s * { animation: none !important; } }"
    style = f".s {{ opacity: 0; }} .s0 {{ opacity: 1; }}\n{''.join(styles)}{calm}"
    return _window("".join(drawn), columns, rows, title, style)


def still(lines: Sequence[Line], columns: int, title: str) -> str:
    """Draw a terminal without animation."""
    return _window("".join(_rows(lines, first=0)), columns, len(lines), title, "")


def _typed(screen: Screen) -> float:
    return _KEY * len(screen.command)


def _frames(at: int, start: float, typed: float, until: float, whole: float, screen: Screen) -> str:
    """Return the keyframes of a screen: its command being typed, and its output."""
    begin, said, over = (f"{100 * moment / whole:.3f}%" for moment in (start, typed, until))
    hidden = "" if start == 0 else f"0%, {begin} {{ opacity: 0; }} "
    gone = "" if until == whole else f"{over}, 100% {{ opacity: 0; }} "
    each = f"{whole:.2f}s step-end infinite"
    keys = max(1, len(screen.command))
    return (
        f"@keyframes s{at} {{ {hidden}{begin} {{ opacity: 1; }} {gone}}}\n"
        f"@keyframes o{at} {{ 0% {{ opacity: 0; }} {said} {{ opacity: 1; }} }}\n"
        f"@keyframes c{at} {{ 0%, {begin} {{ clip-path: inset(0 100% 0 0); "
        f"animation-timing-function: steps({keys}); }} "
        f"{said}, 100% {{ clip-path: inset(0); }} }}\n"
        f".s{at} {{ animation: s{at} {each}; }} .s{at} .o{at} {{ animation: o{at} {each}; }} "
        f".s{at} .c {{ animation: c{at} {whole:.2f}s linear infinite; }}\n"
    )


def _prompt(command: str) -> str:
    prompt = _text("$", 0, 0, Style(color="green", bold=True))
    return f'{prompt}<g class="c">{_text(command, 2, 0, Style(bold=True))}</g>'


def _rows(lines: Iterable[Line], first: int) -> Iterator[str]:
    for row, line in enumerate(lines, first):
        column = 0
        for text, style, _ in line:
            if text.strip() or (style and (style.bgcolor or style.reverse)):
                yield _text(text, column, row, style or Style())
            column += cell_len(text)


def _text(text: str, column: int, row: int, style: Style) -> str:
    ink, ground = _colour(style.color, _INK), _colour(style.bgcolor, None)
    if style.reverse:
        ink, ground = ground or _GROUND, ink or _INK
    x, y, wide = column * _CELL, row * _LINE, cell_len(text) * _CELL
    behind = ""
    if ground is not None:
        behind = f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{_LINE:g}" fill="{_hex(ground)}" shape-rendering="crispEdges"/>'
    faded = ' fill-opacity="0.65"' if style.dim else ""
    heavy = ' font-weight="700"' if style.bold else ""
    said = escape(text.rstrip(), quote=False).replace(" ", "\u00a0")
    if not said:
        return behind
    wide = cell_len(text.rstrip()) * _CELL
    return (
        f'{behind}<text x="{x:g}" y="{y + 13:g}" fill="{_hex(ink or _INK)}"{faded}{heavy} '
        f'textLength="{wide:g}" lengthAdjust="spacingAndGlyphs">{said}</text>'
    )


def _colour(
    colour: Color | None, default: tuple[int, int, int] | None
) -> tuple[int, int, int] | None:
    if colour is None or colour.is_default:
        return default
    return tuple(colour.get_truecolor(_THEME))


def _hex(colour: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _window(drawn: str, columns: int, rows: int, title: str, style: str) -> str:
    width, height = columns * _CELL + 2 * _PAD, rows * _LINE + _BAR + 1.5 * _PAD
    dots = "".join(f'<circle cx="{18 + 16 * at}" cy="17" r="5" fill="#3a4542"/>' for at in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(title)}">\n<style>\n'
        f"text {{ font: {_FONT}px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; "
        f"white-space: pre; }}\n{style}\n</style>\n"
        f'<rect width="{width:g}" height="{height:g}" rx="9" fill="{_hex(_GROUND)}"/>{dots}\n'
        f'<g transform="translate({_PAD:g} {_BAR:g})">{drawn}</g>\n</svg>\n'
    )
