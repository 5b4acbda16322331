"""The samples of opinfo.py on PyTorch's DTensor, four Gloo processes, and on Lockstep in the same layouts: how many
each refuses, and how many it gets wrong.

dtensor.py [--ops PATTERN] [--samples N] [--programs N] [--seed S] [--outcomes FILE] [--json FILE]
           [--page FILE]
"""

import argparse
import collections
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

_HERE = pathlib.Path(__file__).resolve()
RANKS = 4
# Most of it is Gloo's, about peers that have gone.
DIAGNOSTICS = None if os.environ.get("LOCKSTEP_DTENSOR_STDERR") else subprocess.DEVNULL


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run_from(first, arguments, file):
    """Until all ops are done, or a rank dies or waits for ever. Returns whether all are done."""
    port = free_port()
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    command = [sys.executable, str(_HERE.parent / "dtensor_ranks.py")]
    ranks = [subprocess.Popen([*command, str(rank), str(port), str(first), str(arguments.samples), str(arguments.seed),
                               arguments.ops, file, str(arguments.programs)], env=environment, stderr=DIAGNOSTICS)
             for rank in range(RANKS)]
    while any(rank.poll() is None for rank in ranks):
        if any(rank.poll() for rank in ranks):  # one has died: the others would wait
            for rank in ranks:
                rank.kill()
        time.sleep(0.2)
    return all(rank.returncode == 0 for rank in ranks)


def lines_of(file):
    return [json.loads(line) for line in pathlib.Path(file).read_text(encoding="utf-8").splitlines()]


def next_op(lines):
    """Where to go on after those lines, and the op that ended the ranks, if one did."""
    if not lines:
        return 0, None
    if "pauses" in lines[-1]:
        return lines[-1]["pauses"], None
    begun = [line for line in lines if "begins" in line][-1]
    return begun["begins"] + 1, begun["op"]


def run(arguments):
    """What is in the file of outcomes already is not tried again."""
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.outcomes or str(pathlib.Path(folder) / "outcomes")
        pathlib.Path(file).touch()
        done = False
        while not done:
            before = lines_of(file)
            done = run_from(next_op(before)[0], arguments, file)
            lines = lines_of(file)
            if lines == before and not done:
                raise SystemExit("dtensor: four ranks of Gloo did not come up; does tools/python_env run?")
            done = done and "pauses" not in lines[-1]
            op = None if done else next_op(lines)[1]
            if op:
                with open(file, "a", encoding="utf-8") as out:
                    print(json.dumps({"op": op, "kind": "refused", "text": "a rank dies or waits for ever",
                                      "lockstep": "not asked", "lockstep_text": ""}), file=out)
        return [line for line in lines_of(file) if "kind" in line]


def summary_of(outcomes):
    """What DTensor could be asked: samples that draw, or have no tensors, are none."""
    asked = [outcome for outcome in outcomes if outcome["kind"] != "skipped"]

    def side(key):
        counts = collections.Counter(outcome[key] for outcome in asked)
        return {kind: counts[kind] for kind in ("passed", "refused", "wrong", "not asked")}

    return {"cases": len(asked), "skipped": len(outcomes) - len(asked), "dtensor": side("kind"),
            "lockstep": side("lockstep"), "outcomes": outcomes}


def wrong_ops(outcomes, key):
    return collections.Counter(outcome["op"] for outcome in outcomes if outcome.get(key) == "wrong")


def table_of(summary, arguments):
    lines = [f"`tools/opinfo/dtensor.py --ops '{arguments.ops}' --samples {arguments.samples} --programs "
             f"{arguments.programs} --seed {arguments.seed}`: {summary['cases']} samples and programs, the same on both "
             "sides.", "", "| | right | refused | wrong |", "|---|---|---|---|"]
    for name, key in (("DTensor, torch 2.11.0", "dtensor"), ("Lockstep", "lockstep")):
        lines.append(f"| {name} | " + " | ".join(str(summary[key][kind]) for kind in ("passed", "refused", "wrong")) + " |")
    unasked = summary["lockstep"]["not asked"]
    if unasked:
        lines += ["", f"Lockstep was not asked {unasked} times: a rank of DTensor's had died, or waited for ever."]
    wrong = wrong_ops(summary["outcomes"], "kind")
    programs = sum(count for op, count in wrong.items() if op.startswith("program "))
    ops = [f"`{op}` ({count})" for op, count in sorted(wrong.items()) if not op.startswith("program ")]
    lines += ["", f"Wrong on DTensor: {', '.join(ops) or 'no op'}; {programs} programs."]
    return "\n".join(lines)


def print_summary(summary):
    for outcome in summary["outcomes"]:
        for side, key, text in (("DTensor", "kind", "text"), ("Lockstep", "lockstep", "lockstep_text")):
            if outcome.get(key) == "wrong":
                print(f"{outcome['op']} on {side}: {outcome[text]}")
    for side in ("dtensor", "lockstep"):
        counts = summary[side]
        print(f"{side}: {summary['cases']} samples: {counts['passed']} right, {counts['wrong']} wrong, "
              f"{counts['refused']} refused" + (f", {counts['not asked']} not asked" if counts["not asked"] else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ops", default="*", help="ops whose name fits this pattern")
    parser.add_argument("--samples", type=int, default=20, help="of each op, drawn (20)")
    parser.add_argument("--programs", type=int, default=100, help="random programs of 2 to 12 ops (100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--outcomes", help="keeps them there, and goes on after those that are there")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path, help="writes the table there, between the page's marks")
    arguments = parser.parse_args()
    summary = summary_of(run(arguments))
    print_summary(summary)
    if arguments.json:
        arguments.json.write_text(json.dumps(summary, indent=1))
    if arguments.page:
        import page

        page.replace(arguments.page, "dtensor", table_of(summary, arguments))


if __name__ == "__main__":
    main()
