"""Reports: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --quiet: #5c6370; --paper: #fff; --line: #d8dce2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --quiet: #a5acb8; --paper: #17191c; --line: #383d45; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 60rem; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .5rem; break-after: avoid; }
p { max-width: 44rem; } .lead { color: var(--quiet); font-size: 1.05rem; }
.figures { columns: 20rem 2; column-gap: 2rem; }
figure { margin: 0; padding: .5rem 0 1.2rem; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; border-radius: 6px; background: #fff; }
figcaption { color: var(--quiet); font-size: .9rem; margin-top: .4rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: baseline; padding: .3rem 1.1rem .3rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; vertical-align: bottom; } .number { text-align: right; } td.number { white-space: nowrap; }
@media (max-width: 40rem) { table { font-size: .85rem; } th, td { padding-right: .7rem; } }
@media print {
  body { font-size: 10.5pt; line-height: 1.4; max-width: none; padding: 0; } h1 { font-size: 1.6rem; }
  h2 { margin-top: 1.6rem; } tr, .scroll { break-inside: avoid; }
}
"""


class Report:
    """A page that grows from top to bottom.

    >>> report = Report("Films", "What we know of them.")
    >>> report.section("Most liked").table({"film": ["Alien"], "liked": ["90 %"]}, numbers=["liked"])
    >>> "<td class=number>90 %</td>" in report.html()
    True
    """

    def __init__(self, title: str, lead: str) -> None:
        self._title = title
        self._parts = [f"<h1>{escape(title)}</h1>", f"<p class=lead>{escape(lead)}</p>"]

    def section(self, heading: str, *paragraphs: str) -> Report:
        """A heading and what is to be said first."""
        self._parts.append(f"<h2>{escape(heading)}</h2>")
        return self.text(*paragraphs)

    def text(self, *paragraphs: str) -> Report:
        """Paragraphs."""
        self._parts += [f"<p>{escape(each)}</p>" for each in paragraphs]
        return self

    def table(self, columns: Mapping[str, Sequence[str]], numbers: Sequence[str] = ()) -> None:
        """A table of text; columns of `numbers` are set to the right."""
        mark = [" class=number" if name in numbers else "" for name in columns]
        head = "".join(f"<th{each} scope=col>{escape(name)}</th>" for each, name in zip(mark, columns, strict=True))
        rows = [
            "".join(f"<td{each}>{escape(cell)}</td>" for each, cell in zip(mark, row, strict=True))
            for row in zip(*columns.values(), strict=True)
        ]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        self._parts.append(
            f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def figures(self, captions: Mapping[str, str]) -> None:
        """Pictures as SVG elements, each with what it says, side by side where there is room."""
        each = (
            f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>" for svg, caption in captions.items()
        )
        self._parts.append(f"<div class=figures>{''.join(each)}</div>")

    def html(self) -> str:
        """The whole page."""
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self._title)}</title><style>{STYLE}</style></head>"
            f"<body><main>{''.join(self._parts)}</main></body></html>\n"
        )
