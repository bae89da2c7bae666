"""
Pictures of the docs that show what commands print: `pictures/NAME.ansi`, as an SVG.

    python docs/pictures.py DEMO     run the commands in a folder that `infold demo` made, and
                                     write pictures/*.ansi and *.svg (`make pictures` does it)
    python docs/pictures.py          write pictures/*.svg from the texts that are there
    python docs/pictures.py --check  end with 1 if one of them is not what its text says

A text has the colours of the terminal. Only what the demo's data decide is shown: no clock and no
run id, so that two demos give the same pictures.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html import escape
from io import StringIO
from pathlib import Path
from shlex import split

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PICTURES = Path(__file__).parent / "pictures"
WIDTH = 78

COMMANDS = {
    "lateness": "lateness",
    "show": "show daily --plot --columns day,sessions --where \"day>='2026-06-01'\"",
    "lines": "show daily --lines --columns day,people --where \"day>='2026-06-01'\"",
    "status": "status --plot",
    "dag": "dag",
}
"""What is shown, by the name of the picture."""

THEME = TerminalTheme(
    (250, 250, 250),
    (31, 41, 51),
    [(31, 41, 51), (170, 40, 40), (40, 120, 60), (150, 100, 0), (44, 95, 158)] + [(90, 90, 90)] * 3,
)

FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 WIDE HIGH" width="WIDE" height="HIGH"
role="img">
<title>TITLE</title>
<style>
.{unique_id}-matrix {{font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
font-size: {char_height}px; line-height: {line_height}px;}}
{styles}
</style>
<defs>{lines}</defs>
<rect width="100%" height="100%" rx="8" fill="#fafafa" stroke="#cbd2d9"/>
<g transform="translate(12, 8)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""
"""Rich's own has the frame of a window, and a font that is fetched from another host."""


def svg(name: str, text: str) -> str:
    """A picture of a text with the colours of a terminal."""
    title = f"infold {COMMANDS[name]}"
    console = Console(record=True, width=WIDTH, file=StringIO())
    console.print(Text.from_ansi(f"$ {title}\n{text.rstrip()}"), soft_wrap=True)
    lines = 1 + len(text.splitlines())
    size = {"WIDE": f"{WIDTH * 12.2 + 24:g}", "HIGH": f"{lines * 24.4 + 20:g}"}
    code = FORMAT.replace("TITLE", escape(title))
    for word, number in size.items():
        code = code.replace(word, number)
    made = console.export_svg(theme=THEME, code_format=code, unique_id=name)
    return "\n".join(line.rstrip() for line in made.split("\n"))


def texts() -> Iterator[Path]:
    """The texts of the pictures."""
    return iter(sorted(PICTURES.glob("*.ansi")))


def record(demo: Path) -> None:
    """Write what the commands print in the demo's folder, as in a terminal."""
    from click.testing import CliRunner

    from infold.cli import cli, output
    from infold.render.pictures.look import Look

    output.terminal_look = lambda: Look(WIDTH, plain=False)
    PICTURES.mkdir(exist_ok=True)
    for name, command in COMMANDS.items():
        done = CliRunner().invoke(cli, ["-C", str(demo), *split(command)], color=True)
        if done.exit_code:
            sys.exit(f"infold {command}: {done.output}")
        (PICTURES / f"{name}.ansi").write_text(done.stdout, encoding="utf-8")


def main(words: list[str]) -> int:
    """Record if a folder is given; then write the pictures, or check them."""
    check = words == ["--check"]
    if words and not check:
        record(Path(words[0]))
    old = []
    for path in texts():
        picture, made = path.with_suffix(".svg"), svg(path.stem, path.read_text(encoding="utf-8"))
        if not check:
            picture.write_text(made, encoding="utf-8")
        elif not picture.exists() or picture.read_text(encoding="utf-8") != made:
            old.append(picture.name)
    for name in old:
        sys.stderr.write(f"{name} is not what its text says: python docs/pictures.py\n")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
