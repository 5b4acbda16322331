"""The samples of opinfo.py on PyTorch's DTensor, four Gloo processes: how many it refuses, how many it gets wrong.

dtensor.py [--ops PATTERN] [--samples N] [--seed S] [--json FILE]
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

_HERE = pathlib.Path(__file__).resolve()
RANKS = 4


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
                               arguments.ops, file], env=environment, stderr=subprocess.DEVNULL)
             for rank in range(RANKS)]
    ended = [rank.wait() for rank in ranks]
    return all(code == 0 for code in ended)


def lines_of(file):
    return [json.loads(line) for line in pathlib.Path(file).read_text(encoding="utf-8").splitlines()]


def run(arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = str(pathlib.Path(folder) / "outcomes")
        pathlib.Path(file).touch()
        first = 0
        while not run_from(first, arguments, file):
            begun = [line for line in lines_of(file) if "begins" in line]
            if not begun:
                raise SystemExit("dtensor: four ranks of Gloo did not come up; does tools/python_env run?")
            with open(file, "a", encoding="utf-8") as out:
                print(json.dumps({"op": begun[-1]["op"], "kind": "refused", "text": "a rank dies or waits for ever"}),
                      file=out)
            first = begun[-1]["begins"] + 1
        return [line for line in lines_of(file) if "kind" in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ops", default="*", help="ops whose name fits this pattern")
    parser.add_argument("--samples", type=int, default=20, help="of each op, drawn (20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    outcomes = run(arguments)
    counts = collections.Counter(outcome["kind"] for outcome in outcomes)
    wrong = collections.Counter(outcome["op"] for outcome in outcomes if outcome["kind"] == "wrong")
    for outcome in outcomes:
        if outcome["kind"] == "wrong":
            print(f"{outcome['op']}: {outcome['text']}")
    print(f"{len(outcomes)} samples: {counts['passed']} right, {counts['wrong']} wrong (of {len(wrong)} ops), "
          f"{counts['refused']} refused, {counts['skipped']} skipped")
    if arguments.json:
        arguments.json.write_text(json.dumps({"cases": len(outcomes), **counts, "outcomes": outcomes}, indent=1))


if __name__ == "__main__":
    main()
