#!/usr/bin/env python3
"""Writes what `lockstep bench peers --json FILE` measured into README.md and as a picture.

usage: peers_page.py FILE       README.md's table between its two comments, docs/pictures/peers.svg"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAMES = {"one_thread": "one thread", "two_threads": "two threads", "fsdp_2": "fully sharded, two processes",
         "ddp_2": "data parallel, two processes", "tp_2": "tensor parallel, two processes", "one_gpu": "one GPU"}
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #222 } .small { font-size: 11px; fill: #666 }
  .lockstep { fill: #2563eb } .pytorch { fill: #e07a3f } .torchtitan { fill: #8a8f98 }
  .line { fill: none; stroke-width: 1.6 } .line.pytorch { stroke: #e07a3f } .line.torchtitan { stroke: #8a8f98 }
  .axis { stroke: #bbb } .back { fill: #fff }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd } .small { fill: #999 } .axis { stroke: #555 } .back { fill: #0d1117 } .lockstep { fill: #6ea8fe } }
"""


def megabytes(number):
    return f"{number / 1e6:,.0f} MB"


def by_mode(rows):
    """{mode: {peer: row}}, both in the order of the rows."""
    modes = {}
    for row in rows:
        modes.setdefault(row["name"], {})[row["peer_name"]] = row
    return modes


def beside(row):
    return (f"{1 / row['ratio']:.2f}x | {row['peak_memory_bytes'] / row['peer_peak_memory_bytes']:.2f} | "
            f"{row['peer_first_step_seconds']:.1f} s")


def table(result):
    lines = ["| debugmodel, 512 tokens a step | Lockstep: tokens/s, memory, first step | peer | we are faster | our memory "
             "/ its | its first step | losses differ by |", "|---|---|---|---|---|---|---|"]
    for mode, peers in by_mode(result["rows"]).items():
        for peer, row in peers.items():
            ours = (f"{row['tokens_per_second']:,.0f}, {megabytes(row['peak_memory_bytes'])}, "
                    f"{row['first_step_seconds']:.1f} s")
            lines.append(f"| {NAMES[mode]} | {ours} | {peer.replace('_', ' ')} | {beside(row)} | "
                         f"{row['loss_difference']:.1e} |")
    machine = f"{result['cpu']}, {result['cores']} cores, {result['instructions']}, {result['date']}"
    return "\n".join(lines) + f"\n\n({machine}; `make bench-peers`.)"


def bar(x, y, width, kind, text):
    return (f'<rect class="{kind}" x="{x}" y="{y}" width="{width:.0f}" height="12"/>'
            f'<text class="small" x="{x + width + 5:.0f}" y="{y + 10}">{text}</text>')


def bars(modes, parts, left, top):
    most = max(max(row["tokens_per_second"], row["peer_tokens_per_second"]) for peers in modes.values()
               for row in peers.values())
    for mode, peers in modes.items():
        parts.append(f'<text x="{left - 8}" y="{top + 26}" text-anchor="end">{NAMES[mode]}</text>')
        ours = max(row["tokens_per_second"] for row in peers.values())
        speeds = {"lockstep": ours, **{peer: ours * row["ratio"] for peer, row in peers.items()}}
        for kind, speed in speeds.items():
            parts.append(bar(left, top, 380 * speed / most, kind, f"{speed:,.0f} {kind}"))
            top += 14
        top += 10
    return top


def points(row, left, top):
    """Relative difference of the losses by step, from 1e-8 (below: drawn there) to 1e-4, each decade 25 high."""
    import math

    pairs = zip(row["losses"], row["peer_losses"])
    heights = [math.log10(max(abs(ours - peer) / abs(ours), 1e-8)) + 4 for ours, peer in pairs]
    step = 380 / (len(heights) - 1)
    return " ".join(f"{left + i * step:.1f},{top - 25 * height:.1f}" for i, height in enumerate(heights))


def curves(modes, parts, left, top):
    parts.append(f'<text x="{left}" y="{top}">relative difference of losses, steps 1 to 20</text>')
    for power in range(-8, -3):
        y = top + 12 + 25 * (-4 - power)
        parts.append(f'<line class="axis" x1="{left}" x2="{left + 380}" y1="{y}" y2="{y}"/>'
                     f'<text class="small" x="{left - 8}" y="{y + 4}" text-anchor="end">1e{power}</text>')
    for peers in modes.values():
        for peer, row in peers.items():
            parts.append(f'<polyline class="line {peer}" points="{points(row, left, top + 12)}"/>')
    return top + 130


def picture(result):
    modes, parts = by_mode(result["rows"]), []
    bottom = curves(modes, parts, 230, bars(modes, parts, 230, 30) + 24)
    head = '<text x="10" y="18">Tokens a second, Llama 3 debugmodel, 512 tokens a step</text>'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 {bottom}" role="img" '
            f'aria-label="Tokens a second of Lockstep and its peers"><style>{STYLE}</style>'
            f'<rect class="back" width="780" height="{bottom}"/>{head}{"".join(parts)}</svg>\n')


def main():
    result = json.loads(pathlib.Path(sys.argv[1]).read_text())
    readme = ROOT / "README.md"
    text, count = re.subn(r"(<!-- peers -->\n).*?(<!-- end of peers -->)",
                          lambda found: found[1] + table(result) + "\n" + found[2], readme.read_text(), flags=re.DOTALL)
    if count != 1:
        sys.exit("README.md: expected <!-- peers --> and <!-- end of peers --> once")
    readme.write_text(text)
    (ROOT / "docs/pictures/peers.svg").write_text(picture(result))


if __name__ == "__main__":
    main()
