#!/usr/bin/env python3
"""Draws what `lockstep bench scale --json FILE` measured: docs/pictures/scale.svg, and the table of docs/scale.md.

usage: scale_page.py FILE"""
import json
import math
import pathlib
import re
import sys

import picture

ROOT = pathlib.Path(__file__).resolve().parents[3]
LEFT, WIDTH, HEIGHT = 60, 300, 160


def panel(rows, left, title, most, ideal):
    """Ratios by ranks, both by powers of two, from 1/4 to 16."""
    def place(ranks, ratio):
        return left + WIDTH * math.log2(ranks) / math.log2(most), 50 + HEIGHT * (4 - math.log2(ratio)) / 6

    parts = [picture.text(left, 20, title)]
    for ratio in (0.25, 0.5, 1, 2, 4, 8, 16):
        y = place(1, ratio)[1]
        parts += [picture.rule(left, left + WIDTH, y), picture.text(left - 6, y + 4, f"{ratio:g}x", "small", "end")]
    ranks = [row["ranks"] for row in rows]
    parts += [picture.text(place(count, 1)[0], 50 + HEIGHT + 18, f"{count:.0f}", "small", "middle") for count in ranks]
    parts.append(picture.line("ideal", [place(count, ideal(count)) for count in ranks]))
    parts.append(picture.line("", [place(row["ranks"], row["ratio"]) for row in rows]))
    return parts


def table(result):
    lines = ["| ranks | step | of one rank's | tokens/s | memory of a process |", "|---|---|---|---|---|"]
    for row in result["rows"]:
        lines.append(f"| {row['name'].replace('_', ', ')} | {row['ours']:,.0f} ms | {row['ratio']:.2f} | "
                     f"{row['tokens_per_second']:,.0f} | {row['peak_memory_bytes'] / 1e6:,.0f} MB |")
    return "\n".join(lines) + f"\n\n({result['cpu']}, {result['cores']} cores, {result['date']}; `make bench-scale`.)"


def main():
    result = json.loads(pathlib.Path(sys.argv[1]).read_text())
    processes, simulated = ([row for row in result["rows"] if row["name"].startswith(kind)]
                            for kind in ("processes", "simulated"))
    parts = panel(processes, LEFT, "processes: time of a step / one rank's", 8, lambda n: 1 / min(n, result["cores"]))
    parts += panel(simulated, 2 * LEFT + WIDTH + 20, "ranks simulated by one process", 512, lambda n: 1)
    picture.write(ROOT / "docs/pictures/scale.svg", 2 * (LEFT + WIDTH) + 40, HEIGHT + 90,
                  "Time of a step by ranks, in processes and simulated", parts)
    page = ROOT / "docs/scale.md"
    page.write_text(re.sub(r"(<!-- scale -->\n).*?(<!-- end of scale -->)",
                           lambda found: found[1] + table(result) + "\n" + found[2], page.read_text(), flags=re.DOTALL))


if __name__ == "__main__":
    main()
