#!/usr/bin/env python3
"""Writes what `lockstep bench peers --json FILE` measured into README.md and as a picture.

usage: peers_page.py FILE       README.md's table between its two comments, docs/pictures/peers.svg"""
import json
import math
import pathlib
import re
import sys

import picture

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAMES = {"one_thread": "one thread", "two_threads": "two threads", "fsdp_2": "fully sharded, two processes",
         "ddp_2": "data parallel, two processes", "tp_2": "tensor parallel, two processes",
         "cp_2": "context parallel, two processes", "pp_2": "pipeline, two processes", "one_gpu": "one GPU",
         "experts_one": "experts, one thread", "experts_2": "experts, two processes"}


def megabytes(number):
    return f"{number / 1e6:,.0f} MB"


def by_mode(rows):
    """{mode: {peer: row}}, both in the order of the rows."""
    modes = {}
    for row in rows:
        modes.setdefault(row["name"], {})[row["peer_name"]] = row
    return modes


def beside(row):
    bound = f"{row['at_most']:.2f}x" if "at_most" in row else "-"
    return (f"{1 / row['ratio']:.2f}x | {bound} | {row['peak_memory_bytes'] / row['peer_peak_memory_bytes']:.2f} | "
            f"{row['peer_first_step_seconds']:.1f} s")


def table(result):
    lines = ["| debugmodel, 512 tokens a step | Lockstep: tokens/s, memory, first step | peer | we are faster | at most "
             "| our memory / its | its first step | losses differ by |", "|---|---|---|---|---|---|---|---|"]
    for mode, peers in by_mode(result["rows"]).items():
        for peer, row in peers.items():
            ours = (f"{row['tokens_per_second']:,.0f}, {megabytes(row['peak_memory_bytes'])}, "
                    f"{row['first_step_seconds']:.1f} s")
            lines.append(f"| {NAMES[mode]} | {ours} | {peer.replace('_', ' ')} | {beside(row)} | "
                         f"{row['loss_difference']:.1e} |")
    machine = f"{result['cpu']}, {result['cores']} cores, {result['instructions']}, {result['date']}"
    return "\n".join(lines) + f"\n\n({machine}; `make bench-peers`.)"


def bars(modes, parts, left, top):
    most = max(max(row["tokens_per_second"], row["peer_tokens_per_second"]) for peers in modes.values()
               for row in peers.values())
    for mode, peers in modes.items():
        parts.append(picture.text(left - 8, top + 26, NAMES[mode], anchor="end"))
        ours = max(row["tokens_per_second"] for row in peers.values())
        for kind, speed in {"lockstep": ours, **{peer: ours * row["ratio"] for peer, row in peers.items()}}.items():
            width = 380 * speed / most
            parts.append(f'<rect class="{kind}" x="{left}" y="{top}" width="{width:.0f}" height="12"/>')
            parts.append(picture.text(left + width + 5, top + 10, f"{speed:,.0f} {kind}", "small"))
            top += 14
        top += 10
    return top


def points(row, left, top):
    """Relative difference of the losses by step, from 1e-8 (below: drawn there) to 1e-4, each decade 25 high."""
    pairs = zip(row["losses"], row["peer_losses"])
    heights = [math.log10(max(abs(ours - peer) / abs(ours), 1e-8)) + 4 for ours, peer in pairs]
    step = 380 / (len(heights) - 1)
    return [(left + i * step, top - 25 * height) for i, height in enumerate(heights)]


def curves(modes, parts, left, top):
    parts.append(picture.text(left, top, "relative difference of losses, steps 1 to 20"))
    for power in range(-8, -3):
        y = top + 12 + 25 * (-4 - power)
        parts += [picture.rule(left, left + 380, y), picture.text(left - 8, y + 4, f"1e{power}", "small", "end")]
    for mode, peers in modes.items():
        for peer, row in peers.items():
            line = points(row, left, top + 12)
            parts.append(picture.line(peer, line))
            if row["loss_difference"] > 1e-6:
                parts.append(picture.text(line[-1][0] + 5, line[-1][1] + 4, f"{peer}, {NAMES[mode]}", "small"))
    return top + 130


def draw(result):
    modes, parts = by_mode(result["rows"]), [picture.text(10, 18, "Tokens a second, debugmodel, 512 tokens a step")]
    bottom = curves(modes, parts, 230, bars(modes, parts, 230, 30) + 24)
    picture.write(ROOT / "docs/pictures/peers.svg", 860, bottom, "Tokens a second of Lockstep and its peers", parts)


def main():
    result = json.loads(pathlib.Path(sys.argv[1]).read_text())
    readme = ROOT / "README.md"
    text, count = re.subn(r"(<!-- peers -->\n).*?(<!-- end of peers -->)",
                          lambda found: found[1] + table(result) + "\n" + found[2], readme.read_text(), flags=re.DOTALL)
    if count != 1:
        sys.exit("README.md: expected <!-- peers --> and <!-- end of peers --> once")
    readme.write_text(text)
    draw(result)


if __name__ == "__main__":
    main()
