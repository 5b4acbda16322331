#!/usr/bin/env python3
"""The lists that tools/mutate_sources keeps, and its whole way through a small project."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

from mutation import results  # noqa: E402
from mutation.rewrite import find_variants  # noqa: E402
from mutation.trial import Suite, within  # noqa: E402


class Lists(unittest.TestCase):
    def test_equivalent_mutants_are_those_of_this_tree(self):
        entries = results.read_equivalents(ROOT / "tests" / "equivalent_mutants.toml")
        variants = [variant for file in {entry["file"] for entry in entries}
                    for variant in find_variants(file, (ROOT / file).read_text())]
        self.assertEqual(results.equivalent_keys(entries, variants)[1], [])

    def test_an_entry_needs_its_proof(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "list.toml"
            path.write_text('[[equivalent]]\nfile = "a.cpp"\nline = "x"\nkind = "offsets"\n')
            with self.assertRaisesRegex(ValueError, "a.cpp has no proof"):
                results.read_equivalents(path)

    def test_a_page_keeps_what_stands_before_the_mark(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            self.assertEqual(results.on_page(page, "table\n"), "table\n")
            page.write_text(f"# Score\n\n{results.MARK}\n\nan older table\n")
            self.assertEqual(results.on_page(page, "table\n"),
                             f"# Score\n\n{results.MARK}\n\n## Faults in the sources as they stand\n\ntable\n")
            self.assertIn(results.MARK, (ROOT / "tools/lockstep/reports/mutation_report.h").read_text())

    def test_suites_are_taken_while_there_is_time(self):
        suites = [Suite("t", str(seconds), seconds, set()) for seconds in (5, 6, 7)]
        self.assertEqual(len(within(suites, 12)), 2)
        self.assertEqual(len(within(suites, 1)), 1)


PROJECT = {
    "CMakeLists.txt": """\
        cmake_minimum_required(VERSION 3.25)
        project(small LANGUAGES CXX)
        set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
        add_library(small part/part.cpp)
        add_executable(lockstep main.cpp)
        add_executable(test_small tests/test.cpp)
        target_link_libraries(lockstep small)
        target_link_libraries(test_small small)
        """,
    "part/part.cpp": """\
        int next(int a) { return a + 1; }
        int larger(int a, int b) { return a < b ? b : a; }
        int endless(int a) {
          while (a > 0) --a;
          return 0 * a;
        }
        int at(const char* a, int b) { return a[b]; }
        int refused(const char* a, int b) { return at(a, b); }
        int unread(int a) { return a - 1; }
        """,
    "main.cpp": "int next(int);\nint main() { return next(1) == 2 ? 0 : 3; }\n",
    # What GoogleTest says, of two suites.
    "tests/test.cpp": """\
        #include <cstdio>
        #include <cstring>
        int larger(int, int), endless(int);
        int main(int count, char** words) {
          bool first = false, second = false;
          for (int i = 1; i < count; ++i) {
            if (!std::strcmp(words[i], "--gtest_list_tests")) return std::puts("First.\\n  A\\nSecond.\\n  B") < 0;
            first |= std::strstr(words[i], "First.*") != nullptr;
            second |= std::strstr(words[i], "Second.*") != nullptr;
          }
          if (first && larger(1, 2) != 2) return std::puts("[  FAILED  ] First.A (0 ms)"), 1;
          return second && endless(3) != 0;
        }
        """,
}


class Flow(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name) / "root"
        for name, text in PROJECT.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(textwrap.dedent(text))
        subprocess.run("git init -q && git add .", shell=True, cwd=self.root, check=True)

    def run_tool(self, *words):
        command = [ROOT / "tools" / "mutate_sources", "--root", self.root, "--work", self.root.parent / "work",
                   "--configure", "cmake -G Ninja -S . -B build/release", "--verify", "$BUILD/lockstep", *words]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    def test_from_the_copy_to_the_report(self):
        words = ("--kinds", "offsets,negations,dropped_assignments,swapped_arguments", "--count", "9", "--grace", "2")
        done = self.run_tool("part/*.cpp", *words)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        path = self.root.parent / "work" / "results.jsonl"
        verdicts = {record["text"]: (record["verdict"], record["by"])
                    for record in map(json.loads, path.read_text().splitlines())}
        self.assertEqual(verdicts, {
            "int next(int a) { return a + 1; }": ("verify", "exit 3"),
            "int larger(int a, int b) { return a < b ? b : a; }": ("tests", "test_small First.A"),
            "while (a > 0) --a;": ("timeout", "test_small"),
            "int unread(int a) { return a - 1; }": ("not reached", "")})
        self.assertIn(" 1 left out as they do not compile", done.stdout)
        self.assertIn("3 of 4 noticed", done.stdout)
        before = path.read_text()
        self.assertIn("3 of 4 noticed", self.run_tool("part/*.cpp", *words).stdout)
        self.assertEqual(path.read_text(), before)
        self.assert_report()
        self.assert_noticed_once_there_is_a_test()

    def assert_report(self):
        report = self.run_tool("part/*.cpp", "--report").stdout
        self.assertRegex(report, r"part +\d+ +4 +1 +1 +1 +0 +1 +0 +75 %")
        self.assertIn("NOT REACHED  part/part.cpp:9  offsets", report)
        page = self.root.parent / "page.md"
        self.run_tool("part/*.cpp", "--report", "--markdown", page)
        self.assertIn("- part/part.cpp:9 offsets (not reached): `a - 1` -> `a + 1`", page.read_text())

    def assert_noticed_once_there_is_a_test(self):
        tests = self.root / "tests" / "test.cpp"
        text = tests.read_text().replace("int larger(int, int),", "int unread(int), larger(int, int),")
        tests.write_text(text.replace("if (first &&", "if (first && unread(2) != 1) return std::puts("
                                      '"[  FAILED  ] First.B (0 ms)"), 1;\n  if (first &&'))
        done = self.run_tool("part/*.cpp", "--again", "--at-once", "2", "--grace", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("tests test_small First.B", done.stdout)
        self.assertIn("1 of 1 noticed", done.stdout)
        self.assertRegex(self.run_tool("part/*.cpp", "--report").stdout, r"part +\d+ +4 +1 +2 +1 +0 +0 +0 +100 %")

    def test_wrong_inputs_are_one_line(self):
        for words, text in ((("nothing/*.cpp",), "no tracked file is nothing/*.cpp"),
                            (("CMakeLists.txt",), "is no C++ file"),
                            (("part/*.cpp", "--kinds", "typos"), "there is no kind typos"),
                            (("part/*.cpp", "--count", "0"), "--count 0")):
            done = self.run_tool(*words)
            self.assertEqual((done.returncode, done.stderr.count("\n"), text in done.stderr), (2, 1, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
