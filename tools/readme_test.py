#!/usr/bin/env python3
"""Runs the commands that README.md and docs/ show, and compares what they print with what the pages say.

Each ```sh block runs by bash -e from the root of the tree; a nonzero exit fails. A ```text block right after it is its
standard output: its lines must appear in that order, numbers may differ, a line "..." stands for any lines.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
# .ci/run itself runs the tests, after this script.
RUN_ELSEWHERE = {"make test"}
# Digests, durations ("2m07s"), numbers.
VARIABLE = re.compile(r"\b[0-9a-f]{32}\b|\b(\d+h)?(\d+m)?\d+s\b|[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?")


def shape(text):
    """The lines without numbers and without the width of columns."""
    return [re.sub(r"\s+", " ", VARIABLE.sub("#", line)).strip() for line in text.splitlines() if line.strip()]


def first_missing(expected, printed):
    """The first expected line that does not follow the ones before it; None if all do."""
    place = 0
    for line in shape(expected):
        if line == "...":
            continue
        try:
            place = printed.index(line, place) + 1
        except ValueError:
            return line
    return None


def run_block(page, script, expected):
    commands = "\n".join(line for line in script.splitlines() if line.split("#")[0].strip() not in RUN_ELSEWHERE)
    if not commands.strip():
        return True
    print(f"{page}: {commands}", flush=True)
    done = subprocess.run(["bash", "-e", "-c", commands], cwd=ROOT, text=True, stdout=subprocess.PIPE)
    if done.returncode != 0:
        print(f"{page}: exit status {done.returncode}\n{done.stdout}", file=sys.stderr)
        return False
    missing = first_missing(expected, shape(done.stdout)) if expected else None
    if missing is not None:
        print(f"{page}: the page shows a line that was not printed: {missing}\n{done.stdout}", file=sys.stderr)
    return missing is None


def main():
    os.environ.update(NO_COLOR="1", OMP_NUM_THREADS="1")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    blocks = [(page.relative_to(ROOT), *match.groups()) for page in pages for match in BLOCK.finditer(page.read_text())]
    fine = [run_block(*block) for block in blocks]
    print(f"readme: {sum(fine)} of {len(fine)} blocks are as shown")
    return 0 if fine and all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
