"""The table of docs/opinfo.md, from a run of opinfo.py over all ops."""

import collections

BEGIN, END = "<!-- opinfo -->\n", "<!-- end of opinfo -->\n"


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


def write(file, summary, arguments):
    text = file.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    file.write_text(before + BEGIN + "\n".join(lines(summary, arguments)) + "\n" + END + after, encoding="utf-8")
