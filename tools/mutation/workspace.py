"""The copy of the tree that carries the variants, and its build."""
import json
import os
import re
import shutil
import subprocess

from mutation.compiling import Unbuildable

CONFIGURE = "cmake --preset release -DLOCKSTEP_WERROR=OFF -DCMAKE_CXX_FLAGS=-w"
EXECUTABLE = re.compile(r"^(\S+): CXX_EXECUTABLE_LINKER", re.MULTILINE)
UNTRACKED = (".venv", "data")  # what a build or a test needs besides


class Workspace:
    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.tree, self.build = folder / "tree", folder / "tree" / "build" / "release"
        self.tree.mkdir(parents=True, exist_ok=True)

    def copy(self, but):
        """Every tracked file but those; what is as it was keeps its time, so that it is not built again."""
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=self.root, check=True, capture_output=True, text=True)
        names = [name for name in listed.stdout.split("\0") if name and (self.root / name).is_file()]
        for name in names:
            if name not in but:
                copy_file(self.root / name, self.tree / name)
        self.remove_others(names)
        for name in UNTRACKED:
            if (self.root / name).exists() and not (self.tree / name).exists():
                (self.tree / name).symlink_to((self.root / name).resolve())

    def remove_others(self, names):
        """What was copied before and is gone: CMake would find it."""
        memory = self.folder / "copied.json"
        before = json.loads(memory.read_text()) if memory.is_file() else []
        for name in set(before) - set(names):
            (self.tree / name).unlink(missing_ok=True)
        memory.write_text(json.dumps(names))

    def write_header(self, name, text):
        path = self.tree / name
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)

    def configure(self, command):
        done = subprocess.run(command, shell=True, cwd=self.tree, capture_output=True, text=True)
        if done.returncode != 0:
            raise Unbuildable(f"{command} failed:\n{(done.stdout + done.stderr)[-2000:]}")

    def entries(self, files):
        """The compilation of each file, of a header that of a source beside it; without those that are not built."""
        commands = json.loads((self.build / "compile_commands.json").read_text())
        known = {os.path.relpath(entry["file"], self.tree): entry for entry in commands}
        found = {}
        for file in files:
            beside = next((name for name in known if os.path.dirname(name) == os.path.dirname(file)), None)
            if file in known:
                found[file] = known[file]
            elif file.endswith(".h") and beside:
                command = known[beside]["command"].replace(f"-c {self.tree / beside}", f"-x c++ -c {self.tree / file}")
                found[file] = {**known[beside], "command": command}
        return found

    def ninja(self, *words):
        done = subprocess.run(["ninja", "-C", self.build, *words], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def build_headers(self, entries):
        """The precompiled headers that the files' compilations read."""
        wanted = {header for entry in entries.values() for header in precompiled(entry["command"])}
        targets = [os.path.relpath(name, self.build) for name in sorted(wanted)]
        if targets:
            status, output = self.ninja(*targets)
            if status != 0:
                raise Unbuildable(f"the precompiled headers: {output[-2000:]}")

    def programs(self):
        """Paths of the test binaries and of lockstep, relative to the build folder."""
        names = EXECUTABLE.findall(self.ninja("-t", "targets", "all")[1])
        tests = [name for name in names if os.path.basename(name).startswith("test_")]
        return sorted(tests), [name for name in names if name in ("lockstep", "lockstep-engine")]

    def links(self, program, entries):
        """Whether an object of these compilations goes into a program, or into one that it starts."""
        inputs = set(self.ninja("-t", "inputs", program)[1].splitlines())
        return any(str(self.tree / file) in inputs or file in inputs for file in entries)

    def make(self, command, compiling, say):
        """Builds; what a build refuses that the single files did not is left out, too."""
        while True:
            done = subprocess.run(command, shell=True, cwd=self.tree, capture_output=True, text=True)
            output = done.stdout + done.stderr
            if done.returncode == 0:
                return
            say("the build refuses variants")
            if not compiling.drop_from_build(output):
                raise Unbuildable(f"{command} failed:\n{output[-3000:]}")


def precompiled(command):
    """The precompiled headers that a compilation of Clang or GCC reads."""
    of_clang = re.findall(r"-include-pch -Xclang (\S+)", command)
    return of_clang or [f"{name}.gch" for name in re.findall(r"-include (\S+cmake_pch\.hxx)", command)]


def copy_file(source, target):
    if target.is_file() and target.read_bytes() == source.read_bytes():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
    os.utime(target)
