"""The table of docs/opinfo.md, from a run of opinfo.py over all ops; and what pages have between their marks."""

import collections


def verdict(row):
    if row.get("wrong") or row.get("accepted"):
        return "failed"
    if row.get("refused") and row.get("passed"):
        return "in part"
    return "refused" if row.get("refused") else "passed"


def share(part, whole):
    return f"{part} ({100 * part / max(whole, 1):.1f} %)"


def lines(summary, arguments):
    skipped = summary["skipped"]
    total = summary["samples"]
    yield f"`tools/opinfo/opinfo.py --samples {arguments.samples} --seed {arguments.seed}`: {summary['ops']} ops, {total} samples."
    yield ""
    yield "| outcome | samples |"
    yield "|---|---|"
    yield f"| as plain torch: values and gradients, or refused where torch refuses | {share(summary['passed'], total)} |"
    yield f"| failed | {share(summary['failed'], total)} |"
    for reason, count in sorted(skipped.items(), key=lambda item: -item[1]):
        yield f"| skipped: {reason} | {share(count, total)} |"
    yield ""
    groups = collections.defaultdict(list)
    for row in summary["rows"]:
        groups[verdict(row)].append(row["op"])
    for name, text in (("failed", "Failed"), ("refused", "Refused whole"), ("in part", "Refused in part")):
        if groups[name]:
            yield f"{text} ({len(groups[name])}): {', '.join(f'`{op}`' for op in groups[name])}."
            yield ""


def replace(file, name, text):
    """What stands between the marks of this name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, rest = file.read_text(encoding="utf-8").split(begin)
    file.write_text(before + begin + text + "\n" + end + rest.split(end)[1], encoding="utf-8")


def write(file, summary, arguments):
    replace(file, "opinfo", "\n".join(lines(summary, arguments)))
