"""PyTorch's own samples and error inputs of its ops, on random meshes and layouts, beside plain tensors.

opinfo.py [--ops PATTERN] [--slice I/N] [--samples N] [--seed S] [--json FILE] [--page FILE]
"""

import argparse
import collections
import fnmatch
import json
import multiprocessing
import os
import pathlib
import sys
import warnings

_HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(_HERE.parent), str(_HERE.parents[2] / "bindings" / "python")]
os.environ.setdefault("OMP_NUM_THREADS", "1")


def reason_of(text):
    """Refusals of one kind under one name."""
    for part, reason in (("no sharding rule", "no sharding rule"),
                         ("has no plain values", "values that decide sizes"),
                         ("Partial", "unfinished sums"),
                         ("canonical", "no canonical form")):
        if part in text:
            return reason
    return "refused"


def run_op(number, arguments, queue):
    """In a process of its own: a crash is one op's."""
    warnings.filterwarnings("ignore")
    import samples
    import torch

    torch.set_num_threads(1)
    op = samples.all_ops()[number]
    try:
        for outcome in samples.outcomes(op, arguments.seed, arguments.samples):
            queue.put((outcome.kind, outcome.text))
    except Exception as error:  # noqa: BLE001: a sample that torch itself cannot make here
        queue.put(("skipped", f"torch's own sample: {' '.join(str(error).split())[:200]}"))
    queue.put(None)


def results_of(number, arguments, context):
    """All outcomes of one op, and how its process ended."""
    queue = context.SimpleQueue()
    process = context.Process(target=run_op, args=(number, arguments, queue))
    process.start()
    found = []
    while True:
        if queue._reader.poll(1):
            outcome = queue.get()
            if outcome is None:
                break
            found.append(outcome)
        elif not process.is_alive() and not queue._reader.poll(0):
            found.append(("wrong", f"the process ended with {process.exitcode}"))
            break
    process.join()
    return found


def chosen(arguments):
    import samples

    index, count = map(int, arguments.slice.split("/"))
    names = [samples.name_of(op) for op in samples.all_ops()]
    return [(number, name) for number, name in enumerate(names)
            if fnmatch.fnmatch(name, arguments.ops) and number % count == index - 1]


def run(arguments):
    from concurrent.futures import ThreadPoolExecutor

    import samples  # noqa: F401: loaded once, for all that are forked

    context = multiprocessing.get_context("fork")
    work = chosen(arguments)
    rows = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, name), found in zip(work, pool.map(lambda item: results_of(item[0], arguments, context), work)):
            rows.append((name, found))
            if sys.stderr.isatty():
                print(f"\r\033[K{len(rows)} of {len(work)}: {name}", end="", file=sys.stderr)
    return rows


def summary_of(rows):
    counts = collections.Counter(kind for _, found in rows for kind, _ in found)
    skipped = collections.Counter()
    for _, found in rows:
        for kind, text in found:
            if kind == "refused":
                skipped[reason_of(text)] += 1
            if kind == "skipped":
                skipped[text.split(":")[0]] += 1
    return {
        "ops": len(rows),
        "samples": sum(len(found) for _, found in rows),
        "passed": counts["passed"],
        "failed": counts["wrong"] + counts["accepted"],
        "skipped": dict(skipped),
        "rows": [{"op": name, **collections.Counter(kind for kind, _ in found),
                  "texts": sorted({f"{kind}: {text}" for kind, text in found if kind != "passed"})[:5]}
                 for name, found in rows],
    }


def print_summary(summary):
    for row in summary["rows"]:
        for text in row["texts"]:
            if text.startswith(("wrong", "accepted")):
                print(f"{row['op']}: {text}")
    print(f"{summary['ops']} ops, {summary['samples']} samples: {summary['passed']} passed, {summary['failed']} failed, "
          f"{sum(summary['skipped'].values())} skipped")
    for reason, count in sorted(summary["skipped"].items(), key=lambda item: -item[1]):
        print(f"  {count:6} {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ops", default="*", help="ops whose name fits this pattern")
    parser.add_argument("--slice", default="1/1", help="every N-th op, from the I-th on: I/N")
    parser.add_argument("--samples", type=int, default=20, help="of each op, drawn (20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path, help="writes the table there, between the page's marks")
    arguments = parser.parse_args()
    summary = summary_of(run(arguments))
    print_summary(summary)
    if arguments.json:
        arguments.json.write_text(json.dumps(summary, indent=1))
    if arguments.page and (arguments.ops, arguments.slice) == ("*", "1/1"):
        import page

        page.write(arguments.page, summary, arguments)
    return 1 if summary["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
