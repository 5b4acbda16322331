"""The results so far, and the tables that are made of them."""
import collections
import dataclasses
import json
import os
import tomllib

VERDICTS = ("verify", "tests", "timeout", "survived", "not reached")
CAUGHT = ("verify", "tests", "timeout")
COLUMNS = ("variants", "tried", "by verify", "by tests", "timeout", "survived", "not reached", "equivalent", "noticed")


def read_results(path):
    """The last result of each key. A line that was cut off when a run was ended is none."""
    found = {}
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            record = json.loads(line)
            found[record["key"]] = record
        except (ValueError, KeyError):
            continue
    return found


def append_result(path, variant, seed, verdict):
    told = ("key", "file", "line", "kind", "text", "before", "after")
    record = {**{name: getattr(variant, name) for name in told}, "seed": seed, **dataclasses.asdict(verdict)}
    path.parent.mkdir(parents=True, exist_ok=True)
    cut_off = path.is_file() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    with open(path, "a") as file:
        file.write("\n" * bool(cut_off) + json.dumps(record) + "\n")


def read_equivalents(path):
    """What tests/equivalent_mutants.toml lists; ValueError if an entry is not complete."""
    entries = tomllib.loads(path.read_text()).get("equivalent", []) if path.is_file() else []
    for entry in entries:
        missing = [name for name in ("file", "line", "kind", "proof") if not entry.get(name)]
        if missing:
            raise ValueError(f"{path.name}: an entry of {entry.get('file', '?')} has no {', '.join(missing)}")
    return entries


def is_entry_of(entry, variant):
    same = (entry["file"], entry["line"].strip(), entry["kind"]) == (variant.file, variant.text, variant.kind)
    return same and all(entry.get(name) in (None, getattr(variant, name)) for name in ("before", "after"))


def equivalent_keys(entries, variants):
    """The keys that the list takes out, and the entries that no variant of this tree is of."""
    keys, unused = set(), []
    for entry in entries:
        found = {variant.key for variant in variants if is_entry_of(entry, variant)}
        keys |= found
        unused += [entry] * (not found)
    return keys, unused


# In a result that was entered by hand, behind the test's name: it was written because the fault had survived.
LATER = "after the test was written"


class Report:
    """Counts of each folder: of this tree's variants, and of the results that are theirs."""

    def __init__(self, variants, results, equivalents):
        self.rows, self.survivors, self.later = collections.defaultdict(collections.Counter), [], 0
        for variant in variants:
            row, record = self.rows[os.path.dirname(variant.file)], results.get(variant.key)
            row["variants"] += 1
            if variant.key in equivalents:
                row["equivalent"] += 1
            elif record:
                row["tried"] += 1
                row[record["verdict"]] += 1
                self.later += LATER in (record.get("by") or "")
                if record["verdict"] not in CAUGHT:
                    self.survivors.append((variant, record))
        self.total = sum(self.rows.values(), collections.Counter())
        known = {variant.key for variant in variants}
        self.gone = sum(key not in known for key in results)

    def cells(self, row):
        caught = sum(row[name] for name in CAUGHT)
        share = f"{100 * caught / row['tried']:.0f} %" if row["tried"] else "-"
        return [row["variants"], row["tried"], *(row[name] for name in VERDICTS), row["equivalent"], share]

    def lines(self):
        return [("folder", *COLUMNS), *((folder, *self.cells(row)) for folder, row in sorted(self.rows.items())),
                ("all", *self.cells(self.total))]

    def text(self):
        lines = [[str(cell) for cell in line] for line in self.lines()]
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        rows = ["  ".join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))])
                for line in lines]
        return "\n".join([*rows, *self.gone_text(), *self.later_text(), "", *(survivor_text(*each) for each in self.survivors)])

    def gone_text(self):
        return [f"{self.gone} results are of code that is gone"] if self.gone else []

    def later_text(self):
        return [f"{self.later} of these were noticed by nothing at first, and got a test that notices them."] * (
            self.later > 0)

    def markdown(self):
        header, *lines = self.lines()
        rows = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
        rows += [f"| {' | '.join(str(cell) for cell in line)} |" for line in lines]
        listed = [f"- {variant.file}:{variant.line} {variant.kind} ({record['verdict']}): `{variant.before}` -> "
                  f"`{variant.after}`" for variant, record in self.survivors]
        return "\n".join([*rows, "", *self.later_text(), *(["Not noticed:", "", *listed] if listed else []), ""])


# The page that `lockstep mutate` writes has the table behind this line, and keeps it.
MARK = "<!-- from here on: tools/mutate_sources --report --markdown -->"


def on_page(path, table):
    """The table by itself, or where a page has a place for it the page with it."""
    before, mark, _ = (path.read_text() if path.exists() else "").partition(MARK)
    return f"{before}{MARK}\n\n## Faults in the sources as they stand\n\n{table}" if mark else table


def survivor_text(variant, record):
    left = f", {record['left']} suites had no time" if record.get("left") else ""
    return (f"{record['verdict'].upper()}  {variant.file}:{variant.line}  {variant.kind}{left}\n"
            f"  - {variant.text}\n  + ...{variant.after}... instead of {variant.before}\n")
