#!/usr/bin/env python3
"""What tools/mutate_sources writes into small C++ texts."""
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

from mutation.rewrite import HEADER, HEADER_NAME, find_variants, rewrite, with_header  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
