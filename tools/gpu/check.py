"""One run of tools/gpu_check: where things are, what was run, and what came of it."""
import glob
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
FIND_TORCH = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"


class Failed(Exception):
    """A check that did not hold; the rest of its part is not run."""


def torch_folder(python):
    """The folder of the torch that a python3 has, found without importing it; None if there is none."""
    try:
        found = subprocess.run([python, "-c", FIND_TORCH], capture_output=True, text=True)
    except OSError:
        return None
    return pathlib.Path(found.stdout.strip()) if found.returncode == 0 else None


class Check:
    def __init__(self, options):
        self.trial, self.device, self.again = options.trial, options.device, options.again
        default = "build/release" if options.trial else "build/cuda"
        self.folder = pathlib.Path(options.binaries or TREE / default).resolve()
        self.binaries = self.folder / "pretend_gpu" if options.trial and options.device == "cuda" else self.folder
        self.out = pathlib.Path(options.out or TREE / "outputs/gpu_check").resolve()
        self.python = options.torch_python or shutil.which("python3") or sys.executable
        self.torch = torch_folder(self.python)
        self.state_file, self.results, self.lines = self.out / "state.json", {}, []
        if not options.pack:
            self.out.mkdir(parents=True, exist_ok=True)
            self.state = json.loads(self.state_file.read_text()) if self.state_file.is_file() else {}

    # What to run, and in which surroundings.

    def binary(self, name):
        places = [self.binaries / name, self.binaries / "tests" / name]
        for path in places:
            if path.is_file():
                return str(path)
        raise Failed(f"{places[0]} is not there: build it, or name another folder (--binaries)")

    def environment(self):
        """The machine's own LibTorch and CUDA libraries before those that the binaries were linked with."""
        folders = [self.binaries / "lib"]
        if self.torch and not self.trial:
            folders += [self.torch / "lib", *map(pathlib.Path, sorted(glob.glob(f"{self.torch.parent}/nvidia/*/lib")))]
        given = os.environ.get("LD_LIBRARY_PATH")
        found = [str(folder) for folder in folders if folder.is_dir()] + ([given] if given else [])
        variables = dict(os.environ, LOCKSTEP_SOURCE_DIR=str(TREE), NO_COLOR="1")
        variables.setdefault("OMP_NUM_THREADS", "1")
        if found:
            variables["LD_LIBRARY_PATH"] = ":".join(found)
        return variables

    def run(self, name, command, limit=600, own=True, codes=(0,), variables=None):
        """A command, its output in the log NAME.txt. Fails unless its exit status is one of `codes`; None: any.

        `own`: one of ours, not a tool of the machine's."""
        start = time.monotonic()
        log = self.out / f"{name}.txt"
        words = [str(word) for word in command]
        try:
            done = subprocess.run(words, env=dict(self.environment() if own else os.environ, **(variables or {})), cwd=TREE, text=True, timeout=limit,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
        except subprocess.TimeoutExpired as late:
            log.write_text(str(late.stdout or ""))
            raise Failed(f"{name}: no end within {limit} s: {' '.join(words)}")
        log.write_text(f"$ {' '.join(words)}\n{done.stdout}[exit status {done.returncode}, "
                       f"{time.monotonic() - start:.1f} s]\n")
        if codes is not None and done.returncode not in codes:
            end = "\n".join(done.stdout.splitlines()[-15:])
            raise Failed(f"{name}: exit status {done.returncode}: {' '.join(words)}\n{end}")
        return done

    # What came of it.

    def say(self, line):
        print(line, flush=True)
        self.lines.append(line)

    def require(self, holds, text):
        if not holds:
            raise Failed(text)
        self.say(f"  ok   {text}")

    def table(self, name, rows):
        """Rows (dictionaries of the same keys) as text and as NAME.json."""
        (self.out / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")
        if not rows:
            return
        texts = [list(rows[0])] + [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
        widths = [max(len(line[c]) for line in texts) for c in range(len(texts[0]))]
        for line in texts:
            self.say("  " + "  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip())

    def fingerprint(self):
        """Of what is run: binaries, the tree's scripts, and how."""
        sum_of = hashlib.sha256(f"{self.device} {self.trial} {self.torch}".encode())
        files = [path for path in sorted(self.binaries.rglob("*")) if path.is_file() and os.access(path, os.X_OK)]
        for path in [*files, *sorted((TREE / "tools/gpu").glob("*.py"))]:
            sum_of.update(f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
        return sum_of.hexdigest()[:16]

    def part(self, number, title, function):
        mine = self.fingerprint()
        before = self.state.get(str(number), {})
        self.lines = []
        self.say(f"part {number}  {title}")
        if before.get("binaries") == mine and before.get("passed") and not self.again:
            self.results[number] = True
            return self.say(f"  passed before, with these binaries ({before['seconds']} s)")
        start, passed = time.monotonic(), True
        try:
            function(self)
        except Failed as failure:
            passed = False
            self.say(f"  FAILED: {failure}")
        seconds = round(time.monotonic() - start)
        self.say(f"  {'passed' if passed else 'failed'} in {seconds} s")
        self.results[number] = passed
        self.state[str(number)] = {"binaries": mine, "passed": passed, "seconds": seconds}
        self.state_file.write_text(json.dumps(self.state, indent=1) + "\n")
        (self.out / f"part{number}.txt").write_text("\n".join(self.lines) + "\n")

    def verdict(self):
        failed = [str(number) for number, passed in self.results.items() if not passed]
        where = "a GPU that host memory plays" if self.trial and self.device == "cuda" else self.device
        print(f"{len(self.results) - len(failed)} parts passed, {len(failed)} failed"
              + (f" ({', '.join(failed)})" if failed else "") + f", on {where}")
        return 1 if failed else 0
