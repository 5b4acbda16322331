#!/usr/bin/env python3
"""Python's view of meshes, and that the trials of PyTorch's samples notice what they are for."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import warnings

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "bindings" / "python"), str(TREE / "tools" / "opinfo")]
warnings.filterwarnings("ignore")

import torch  # noqa: E402

import dtensor  # noqa: E402
import lockstep  # noqa: E402
import placing  # noqa: E402
import programs  # noqa: E402
import samples  # noqa: E402
import trial  # noqa: E402


class Bindings(unittest.TestCase):
    def setUp(self):
        self.mesh = lockstep.mesh("dp=2,tp=2")
        self.plain = torch.arange(48.0).view(8, 6)

    def test_values_go_there_and_back(self):
        placed = lockstep.distribute(self.plain, self.mesh, "[dp=S(0), tp=S(1)]")
        self.assertEqual(placed.device.type, "mesh")
        self.assertEqual(lockstep.layout_of(placed), "[dp=S(0), tp=S(1)]")
        self.assertEqual([list(shard.shape) for shard in lockstep.shards_of(placed)], [[4, 3]] * 4)
        self.assertTrue(lockstep.shards_of(placed)[2].equal(self.plain[4:, :3]))
        moved = lockstep.redistribute(placed, "[dp=R, tp=S(0)]")
        self.assertTrue(lockstep.gather(moved).equal(self.plain))

    def test_shards_become_a_tensor(self):
        shards = list(self.plain.view(4, 2, 6))
        cut = lockstep.from_shards(shards, self.mesh, "[dp=S(0), tp=S(0)]", [8, 6], torch.float32)
        self.assertTrue(lockstep.gather(cut).equal(self.plain))
        parts = lockstep.from_shards(shards, self.mesh, "[dp=P(sum), tp=P(sum)]", [2, 6], torch.float32)
        self.assertTrue(lockstep.gather(parts).equal(self.plain.view(4, 2, 6).sum(0)))

    def test_gradients_are_one_devices(self):
        def gradient(x):
            loss = torch.softmax(x @ x.t() / 100, dim=1).square().sum()
            return torch.autograd.grad(loss, x)[0]

        placed = lockstep.distribute(self.plain, self.mesh, "[dp=S(0), tp=S(1)]").requires_grad_()
        torch.testing.assert_close(lockstep.gather(gradient(placed)), gradient(self.plain.requires_grad_()))

    def test_draws_are_the_same_on_every_mesh(self):
        def drawn(axes, layout):
            mesh = lockstep.mesh(axes)
            lockstep.work_on(mesh, seed=3)
            return lockstep.gather(torch.nn.functional.dropout(lockstep.distribute(torch.ones(8, 6), mesh, layout)))

        self.assertTrue(drawn("a=1", "[]").equal(drawn("a=3,b=2", "[a=S(0), b=S(1)]")))
        self.assertTrue(drawn("a=1", "[]").min() == 0)

    def test_errors_say_what_to_do(self):
        for call, text in ((lambda: lockstep.distribute(self.plain, self.mesh, "[x=R]"), "has no axis 'x'"),
                           (lambda: lockstep.layout_of(self.plain), "lies on no mesh; lockstep.distribute"),
                           (lambda: lockstep.mesh("dp=0"), "dp=0"),
                           (lambda: torch.ops.lockstep.distribute(self.plain, 99, "[]"), "there is no mesh 99"),
                           (lambda: lockstep.from_shards([self.plain], self.mesh, "[]", [8, 6], torch.float32), "4")):
            with self.assertRaisesRegex(RuntimeError, text.replace("[", r"\[")):
                call()


def op_named(name):
    return next(op for op in samples.all_ops() if samples.name_of(op) == name)


class Altered(trial.Trial):
    """Something on the mesh is not as it should be."""

    def call_on(self, mesh, values):
        return self.alter(super().call_on(mesh, values))


class Trials(unittest.TestCase):
    def outcome(self, alter, name="mul", refused=False):
        op = op_named(name)
        chance = random.Random(1)
        if refused:
            sample, gradients = next(iter(op.error_inputs("cpu"))).sample_input, False
        else:
            sample, gradients = next(iter(op.sample_inputs("cpu", torch.float64, requires_grad=True))), True
        one = Altered(op, sample, lockstep.mesh("a=2"), chance, 1)
        one.alter = alter
        return one.run_refused() if refused else one.run(gradients)

    def test_right_results_pass(self):
        self.assertEqual(self.outcome(lambda result: result).kind, "passed")

    def test_wrong_values_are_noticed(self):
        found = self.outcome(lambda result: result * 1.00001)
        self.assertEqual(found.kind, "wrong")
        self.assertRegex(found.text, r"^a=2 \[a=.*not close")

    def test_wrong_gradients_are_noticed(self):
        found = self.outcome(lambda result: result.detach() * 2 - result)
        self.assertEqual(found.kind, "wrong")
        self.assertIn("gradient", found.text)

    def test_missing_gradients_are_noticed(self):
        found = self.outcome(lambda result: result.detach())
        self.assertIn("gradient", found.text)

    def test_other_sizes_are_noticed(self):
        self.assertEqual(self.outcome(lambda result: result.unsqueeze(0)).kind, "wrong")

    def test_what_should_be_refused_and_is_not_is_noticed(self):
        op = op_named("gather")
        sample = next(iter(op.error_inputs("cpu"))).sample_input
        one = Altered(op, sample, lockstep.mesh("a=2"), random.Random(1), 1)
        one.call_on = lambda mesh, values: None
        self.assertEqual(one.run_refused().kind, "accepted")

    def test_summands_differ_on_every_rank(self):
        mesh = lockstep.mesh("a=3,b=2")
        value = torch.arange(12.0, dtype=torch.float64).view(4, 3)
        placed = placing.with_summands(value, mesh, "[a=P(sum), b=S(0)]")
        self.assertTrue(lockstep.gather(placed).equal(value))
        self.assertFalse(any(shard.equal(value[:2]) for shard in lockstep.shards_of(placed)))

    def test_programs_are_the_same_for_whoever_asks_and_agree(self):
        for number in range(20):
            program = programs.Program(number)
            self.assertEqual(program.text(), programs.Program(number).text())
            one = trial.Trial(program, program.sample(), lockstep.mesh("a=2,b=2"), random.Random(number), number)
            found = one.run(True)
            self.assertEqual(found.kind, "passed", f"{program.text()}: {found.text}")

    def test_what_dtensor_is_asked_is_counted_on_both_sides(self):
        outcomes = [{"op": "a", "kind": "wrong", "lockstep": "passed"}, {"op": "b", "kind": "skipped", "lockstep": "skipped"},
                    {"op": "c", "kind": "refused", "lockstep": "not asked"}]
        found = dtensor.summary_of(outcomes)
        self.assertEqual((found["cases"], found["skipped"]), (2, 1))
        self.assertEqual(found["dtensor"], {"passed": 0, "refused": 1, "wrong": 1, "not asked": 0})
        self.assertEqual(found["lockstep"], {"passed": 1, "refused": 0, "wrong": 0, "not asked": 1})

    def test_dtensor_goes_on_behind_the_op_that_ended_the_ranks(self):
        lines = [{"begins": 3, "op": "a"}, {"op": "a", "kind": "passed"}]
        self.assertEqual(dtensor.next_op([]), (0, None))
        self.assertEqual(dtensor.next_op(lines), (4, "a"))
        self.assertEqual(dtensor.next_op([*lines, {"pauses": 4}]), (4, None))

    def test_a_tensor_that_is_made_on_a_mesh_lies_there(self):
        lockstep.work_on(lockstep.mesh("a=2"))
        self.assertTrue(lockstep.gather(torch.eye(3, device="mesh")).equal(torch.eye(3)))

    def test_the_command_counts_and_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "opinfo.json"
            run = subprocess.run([sys.executable, TREE / "tools" / "opinfo" / "opinfo.py", "--ops", "mu*", "--samples", "6",
                                  "--json", file], capture_output=True, text=True, check=False)
            found = json.loads(file.read_text())
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(found["failed"], 0)
        self.assertGreaterEqual(found["passed"], 6)
        self.assertEqual(found["samples"], found["passed"] + sum(found["skipped"].values()))


if __name__ == "__main__":
    unittest.main()
