#!/usr/bin/env python3
"""What tools/mutate_sources writes into small C++ texts, and its whole way through a small project."""
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
from mutation.rewrite import HEADER, HEADER_NAME, find_variants, rewrite, with_header  # noqa: E402
from mutation.trial import Suite, within  # noqa: E402


def changes(body, kind):
    """(before, after) of each variant of a kind in a function with this body."""
    return [(variant.before, variant.after) for variant in find_variants("f.cpp", f"void f() {{\n{body}\n}}\n", [kind])]


def found(text):
    return [(variant.before, variant.after) for variant in find_variants("f.cpp", text)]


def status_of(program, **environment):
    return subprocess.run([program], env=environment).returncode


class Kinds(unittest.TestCase):
    def test_offsets(self):
        self.assertEqual(changes("g(i + 1, a - b * c);", "offsets"), [("i + 1", "i - 1"), ("a - b * c", "a + b * c")])
        self.assertEqual(changes('g("a" + b, -1, a += 2);', "offsets"), [])

    def test_indices(self):
        self.assertEqual(changes("g(x[i], y[0], z[2], w[i + 1]);", "indices"),
                         [("i", "i > 0 ? i - 1 : i"), ("0", "1"), ("2", "1")])

    def test_ends(self):
        self.assertEqual(changes("g(cut.start - held.end(), p->first);", "ends"),
                         [("cut.start", "cut.end()"), ("held.end()", "held.start"), ("p->first", "p->second")])

    def test_comparisons(self):
        self.assertEqual(changes("while (a + 1 < b.c(d) && e == f[g]) h();", "comparisons"),
                         [("a + 1 < b.c(d)", "a + 1 <= b.c(d)"), ("e == f[g]", "e != f[g]")])

    def test_factors(self):
        self.assertEqual(changes("return a + b * c / *d;", "factors"), [("b * c / *d", "b * c"), ("b * c", "b")])

    def test_numbers(self):
        self.assertEqual(changes("g(0, 1, 8, 16u, 1'000, 0x10, 1.5, 0.0, x[3]);", "numbers"),
                         [("0", "1"), ("1", "0"), ("8", "16"), ("16u", "32u"), ("1'000", "2000"), ("1.5", "2 * 1.5"),
                          ("0.0", "1.0")])

    def test_counts(self):
        self.assertEqual(changes("g(shards.size(), p->rank_count, total_bytes(x));", "counts"),
                         [("shards.size()", "shards.size() * 2"), ("p->rank_count", "p->rank_count * 0 + 1"),
                          ("total_bytes(x)", "total_bytes(x) * 0")])
        self.assertEqual(changes("int64_t count = 3; count = 4; ++count; g(&count);", "counts"), [])

    def test_axes(self):
        self.assertEqual(changes("g(dim, move_.axis, x.cut_dim());", "axes"),
                         [("dim", "dim == 0 ? 1 : 0"), ("move_.axis", "move_.axis == 0 ? 1 : 0"),
                          ("x.cut_dim()", "x.cut_dim() == 0 ? 1 : 0")])
        self.assertEqual(changes("int dim = 0; for (int axis : axes) dim = 2; g(Axis{.dim = 1});", "axes"), [])

    def test_dropped_calls(self):
        body = "g(x);\nif (a) b.c(d);\nelse ::e<int>(f);\nFoo h(i);\nauto j = k(l);\nreturn m(n);"
        self.assertEqual([before for before, _ in changes(body, "dropped_calls")], ["g(x)", "b.c(d)", "::e<int>(f)"])

    def test_dropped_assignments(self):
        body = "x = y;\na.b[c] += d, e = f;\n++g;\nh--;\nint i = j;\nauto& k = l;\nfor (m = 0; m < 2; ++m) *n = 3;"
        self.assertEqual([before for before, _ in changes(body, "dropped_assignments")],
                         ["x = y", "a.b[c] += d, e = f", "++g", "h--", "*n = 3"])

    def test_swapped_arguments(self):
        self.assertEqual(changes("f(a, b.c, g(h), 1);", "swapped_arguments"),
                         [("f(a, b.c, g(h), 1)", "f(b.c, a, g(h), 1)")])
        self.assertEqual(changes("Foo x(a, b); f(a, a);", "swapped_arguments"), [])

    def test_negations(self):
        self.assertEqual(changes("if (auto x = g(); x > a) return b ? c : d;", "negations"),
                         [("x > a", "!(x > a)"), ("b", "!(b)")])
        self.assertEqual(changes("if (auto* x = g()) h();", "negations"), [])

    def test_early_returns(self):
        self.assertEqual(changes("if (a) return;\nif (b) { continue; }\nif (c) d();", "early_returns"),
                         [("a", "false"), ("b", "false")])

    def test_junctions(self):
        self.assertEqual(changes("return a && !b || c;", "junctions"),
                         [("a && !b || c", "(a && !b) && (c)"), ("a && !b", "(a) || (!b)")])
        self.assertEqual(changes("for (auto&& x : y) g([](T&& z) {});", "junctions"), [])

    def test_min_max(self):
        self.assertEqual(changes("g(std::min(a, b), std::max<size_t>(c, d), min);", "min_max"),
                         [("std::min(a, b)", "std::max(a, b)"), ("std::max<size_t>(c, d)", "std::min<size_t>(c, d)")])


class Untouched(unittest.TestCase):
    def test_what_is_no_code(self):
        self.assertEqual(found('void f() {\n// a + 1;\n/* g(b);\n h(c); */\n#define X(a) a + 1 \\\n  - 2\n}\n'), [])
        self.assertEqual([before for before, _ in found('void f() { g("a + 1 < b", \'0\', R"(h(2);)"); }')],
                         ['g("a + 1 < b", \'0\', R"(h(2);)")'])

    def test_what_has_to_be_constant(self):
        for statement in ("constexpr int x = 1 + 2;", "static_assert(a == 1);", "using T = A<1 + 1>;", "int x[4 * n];",
                          "enum E { a = 1, b };", "const int kMost = 3 + n;", "CHECK_IT(a == 1, b + 1);",
                          "alignas(16) int x;", "[[nodiscard]] T x;", "std::array<int, 3> x;"):
            self.assertEqual(found(f"void f() {{\n{statement}\n}}\n"), [], statement)
        self.assertEqual(found("void f() {\nswitch (a) {\ncase 1 + 1:\nbreak;\n}\n}\n"), [])
        self.assertEqual(found("constexpr int f(int a) { return a + 1; }\n"), [])

    def test_declarations(self):
        text = """
            template <int kA = 3, class T = decltype(1 + 1)> struct A : B<2> { int x = 1 + 2; void f(int a = 3); };
            const auto x = y + 1;
            enum class E { a = 1 };
            namespace n { bool operator==(const A& a, const A& b); extern int z[7]; }
            """
        self.assertEqual(found(text), [])

    def test_bodies_are_found_everywhere(self):
        bodies = ("struct A { int f() const { return a + b; } };", "A::A(int x) : y_(a + b) {}",
                  "A::A() : y_{c}, z_(d) { return a + b; }", "template <class T> T g() noexcept { return a + b; }",
                  "namespace { bool operator=(A x) { return a + b; } }",
                  "auto f() -> int { return [&] { return a + b; }; }",
                  "void f() { struct L { int x = 3; int g() { return a + b; } }; }")
        for body in bodies:
            self.assertEqual(found(body), [("a + b", "a - b")], body)

    def test_a_default_argument_of_a_lambda(self):
        self.assertEqual(found("void f() { auto g = [n = a + 1](int x = 3 * 4) { return x + n; }; }"),
                         [("x + n", "x - n")])


class Rewriting(unittest.TestCase):
    def variants(self, text, kinds):
        variants = find_variants("f.cpp", text, kinds)
        for number, variant in enumerate(variants):
            variant.number = number
        return variants

    def test_variants_of_one_line_stand_around_each_other(self):
        text = "int f(int a) { return a + 1 < 3; }"
        rewritten, places = rewrite(text, self.variants(text, ["comparisons", "offsets"]))
        self.assertEqual(rewritten, "int f(int a) { return (lockstep_mutant::is(0) ? (a + 1 <= 3) : "
                                    "((lockstep_mutant::is(1) ? (a - 1) : (a + 1)) < 3)); }")
        self.assertEqual({rewritten[begin:begin + 23] for begin, _ in places.values()},
                         {"(lockstep_mutant::is(0)", "(lockstep_mutant::is(1)"})

    def test_lines_stay_where_they_are(self):
        text = "void f() {\n  g(a +  // one\n      1);\n}\n"
        rewritten, _ = rewrite(text, self.variants(text, ["dropped_calls", "offsets", "numbers"]))
        self.assertEqual(rewritten.count("\n"), text.count("\n"))
        self.assertIn("// one\n", rewritten)

    def test_keys_outlive_other_lines(self):
        first = self.variants("void f() {\n  g(a + 1);\n}\n", ["offsets"])
        second = self.variants("int x;\nvoid f() {\n  h();\n  g(a + 1);\n  g(a + 1);\n}\n", ["offsets"])
        self.assertEqual(first[0].key, second[0].key)
        self.assertNotEqual(second[0].key, second[1].key)

    def test_the_number_chooses_at_run_time(self):
        text = textwrap.dedent("""\
            int f(int a, int b) { return a + 1 < b ? a * b : b; }
            int main() { return f(2, 5); }
            """)
        variants = self.variants(text, ["comparisons", "factors", "negations", "offsets"])
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / HEADER_NAME).write_text(HEADER.replace("@NUMBERS@", str(len(variants))))
            (folder / "f.cpp").write_text(with_header(rewrite(text, variants)[0], "f.cpp"))
            subprocess.run(["c++", "-std=c++20", folder / "f.cpp", "-o", folder / "f"], check=True)
            trace = folder / "trace"
            trace.write_bytes(bytes(len(variants)))
            statuses = {"": status_of(folder / "f", LOCKSTEP_MUTANT_TRACE=str(trace))}
            for variant in variants:
                statuses[variant.after] = status_of(folder / "f", LOCKSTEP_MUTANT=str(variant.number))
            self.assertEqual(statuses, {"": 10, "!(a + 1 < b)": 5, "a + 1 <= b": 10, "a - 1": 10, "a": 2})
            self.assertEqual(trace.read_bytes(), b"\1" * len(variants))


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
