"""Leaves out the variants that do not compile, by what the compiler says of them."""
import bisect
import concurrent.futures
import hashlib
import json
import re
import shlex
import subprocess
import threading

from mutation.rewrite import rewrite, with_header

ERROR = re.compile(r"^([^\s:][^:\n]*):(\d+):(?:(\d+):)? (?:fatal )?error: ", re.MULTILINE)
MENTIONED = re.compile(r"^([^\s:][^:\n]*):(\d+):", re.MULTILINE)
MOST_ROUNDS = 40


class Unbuildable(Exception):
    """What the compiler refuses although no variant stands there."""


def syntax_command(command):
    """A compilation that only looks, and does not warn."""
    words, kept, skip = shlex.split(command), [], False
    for word in words:
        if skip or word in ("-Werror", "-c"):
            skip = False
        elif word == "-o":
            skip = True
        else:
            kept.append(word)
    return [*kept, "-w", "-fsyntax-only"]


class Compiling:
    """The texts of the files with their variants, less those that were left out, which it remembers in `memory`."""

    def __init__(self, tree, texts, variants, memory):
        self.tree, self.texts, self.variants, self.memory = tree, texts, variants, memory
        self.lock = threading.Lock()
        remembered = json.loads(memory.read_text()) if memory.is_file() else {}
        self.dropped, self.fine = set(remembered.get("dropped", [])), remembered.get("fine", {})

    def save(self):
        with self.lock:
            self.memory.write_text(json.dumps({"dropped": sorted(self.dropped.copy()), "fine": self.fine.copy()}))

    def kept(self, file):
        return [variant for variant in self.variants[file] if variant.key not in self.dropped]

    def left_out(self):
        return sum(len(variants) - len(self.kept(file)) for file, variants in self.variants.items())

    def write(self, file):
        """Writes the file into the tree if it is not there already; returns its text and the places of variants."""
        text, places = rewrite(self.texts[file], self.kept(file))
        path, whole = self.tree / file, with_header(text, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text() != whole:
            path.write_text(whole)
        return text, places

    def drop(self, file, output):
        """Leaves out what the compiler's output blames in this file. Whether anything was."""
        text, places = rewrite(self.texts[file], self.kept(file))
        blamed = set()
        for line, column in positions(ERROR, output, self.tree / file):
            blamed |= self.at(file, text, places, line, column)
        if not blamed:
            for line, _ in positions(MENTIONED, output, self.tree / file):
                blamed |= self.at(file, text, places, line, 0)
        self.dropped |= blamed
        return bool(blamed)

    def at(self, file, text, places, line, column):
        """The innermost variant that holds a place of the rewritten text; without one all of the line."""
        starts = [0, *(match.end() for match in re.finditer("\n", text))]
        place = starts[min(line, len(starts)) - 1] + column - 1
        around = [(end - begin, key) for key, (begin, end) in places.items() if begin <= place < end]
        if column and around:
            return {min(around)[1]}
        return {variant.key for variant in self.kept(file) if variant.line <= line <= variant.last_line}

    def check(self, file, entry, say):
        """Compiles a file until no variant is refused."""
        command = syntax_command(entry["command"])
        for _ in range(MOST_ROUNDS):
            self.write(file)
            state = hashlib.sha256(((self.tree / file).read_text() + shlex.join(command)).encode()).hexdigest()
            if self.fine.get(file) == state:
                return
            done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
            if done.returncode == 0:
                self.fine[file] = state
                self.save()
                return say(file)
            if not self.drop(file, done.stderr):
                break
        self.give_up(file, done.stderr)

    def give_up(self, file, output):
        if not self.kept(file):
            raise Unbuildable(f"{file} does not compile as it is:\n{output[-2000:]}")
        self.dropped |= {variant.key for variant in self.variants[file]}
        self.write(file)

    def check_all(self, entries, jobs, say):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda file: self.check(file, entries[file], say), entries))
        self.save()

    def drop_from_build(self, output):
        """The same with the output of a build. Whether anything was left out."""
        files = [file for file in self.variants if str(self.tree / file) in output or file in output]
        changed = [file for file in files if self.drop(file, output)]
        for file in changed:
            self.write(file)
        self.save()
        return bool(changed)


def positions(pattern, output, path):
    """Lines and columns (0 if unknown) that the output names in this file."""
    for match in pattern.finditer(output):
        if match.group(1) == str(path) or str(path).endswith("/" + match.group(1).lstrip("./")):
            column = match.group(3) if pattern.groups > 2 else None
            yield int(match.group(2)), int(column or 0)
