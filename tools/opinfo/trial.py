"""One sample of an op: on a mesh and on plain tensors, values and gradients."""

import contextlib
import dataclasses

import torch
from torch.utils import _pytree as pytree

import lockstep
import placing


# Of a few operands that samples have in single precision: those of torch's own tests.
TOLERANCES = {torch.float32: (1.3e-6, 1e-5), torch.complex64: (1.3e-6, 1e-5)}


@dataclasses.dataclass
class Outcome:
    kind: str  # "passed", "refused", "skipped", "wrong", "accepted": what should have been refused
    text: str = ""


def tensors_in(values):
    return [value for value in pytree.tree_leaves(values) if isinstance(value, torch.Tensor)]


def difference(actual, expected):
    """What differs, or an empty text: sums may be taken in another order."""
    actual, expected = tensors_in(actual), tensors_in(expected)
    if len(actual) != len(expected):
        return f"{len(actual)} results instead of {len(expected)}"
    for one, other in zip(actual, expected):
        try:
            relative, absolute = TOLERANCES.get(other.dtype, (1e-6, 1e-8))
            torch.testing.assert_close(one, other.detach(), rtol=relative, atol=absolute, equal_nan=True)
        except AssertionError as error:
            return " ".join(str(error).split())[:300]
    return ""


def gradients(results, inputs, weights):
    """Of a linear function of the real results; None where there is none."""
    wanted = [tensor for tensor in tensors_in(inputs) if tensor.requires_grad]
    pairs = [(result, weight) for result, weight in zip(tensors_in(results), weights)
             if weight is not None and result.requires_grad]
    if not wanted or not pairs:
        return []
    return torch.autograd.grad([result for result, _ in pairs], wanted, [weight for _, weight in pairs],
                               allow_unused=True)


def outcome_of_gradients(got, right, where):
    if [g is None for g in got] != [g is None for g in right]:
        return Outcome("wrong", f"{where}: other inputs have a gradient")
    wrong = difference([g for g in got if g is not None], [g for g in right if g is not None])
    return Outcome("wrong", f"{where}: gradient: {wrong}") if wrong else Outcome("passed")


def weights_for(results, seed):
    generator = torch.Generator().manual_seed(seed)

    def one(tensor):
        if not tensor.requires_grad:
            return None
        drawn = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
        return drawn.to(tensor.dtype)

    return [one(tensor) for tensor in tensors_in(results)]


def copied(values):
    """Leaves of their own, so that both sides start from the same values."""
    return pytree.tree_map(
        lambda value: value.detach().clone().requires_grad_(value.requires_grad)
        if isinstance(value, torch.Tensor) else value, values)


def made_on_mesh(values):
    """The call with the mesh as the device of what it makes, or None where it names no device."""
    first, rest, named = values
    return (first, rest, {**named, "device": "mesh"}) if "device" in named else None


@contextlib.contextmanager
def seeded(seed):
    """Some samples set a seed of their own first, always the same: it is this one, too."""
    set_seed = torch.manual_seed
    set_seed(seed)
    torch.manual_seed = lambda _: set_seed(seed)
    try:
        yield
    finally:
        torch.manual_seed = set_seed


class Trial:
    """A sample and where it is tried."""

    def __init__(self, op, sample, mesh, random, seed, draws=False):
        self.op, self.mesh, self.random, self.seed, self.draws = op, mesh, random, seed, draws
        self.values = (sample.input, sample.args, sample.kwargs)

    def call(self, values, seed=0):
        first, rest, named = values
        with seeded(seed):
            return self.op.op(first, *rest, **named)

    def call_on(self, mesh, values):
        lockstep.work_on(mesh, seed=1)
        return self.call(values)

    def expected(self, plain):
        """Plain torch's results; of an op that draws, those of one rank."""
        if not self.draws:
            return self.call(plain)
        one = lockstep.mesh("a=1")
        alone = pytree.tree_map(
            lambda value: lockstep.distribute(value, one, "[]") if isinstance(value, torch.Tensor) else value, plain)
        if not tensors_in(plain):
            alone = made_on_mesh(plain)
        return placing.whole(self.call_on(one, alone))

    def place(self):
        """The call on the mesh, and its layouts."""
        if not tensors_in(self.values):
            return made_on_mesh(self.values), ["made there"]
        return placing.place_all(self.random, copied(self.values), self.mesh)

    def has_place(self):
        return bool(tensors_in(self.values)) or made_on_mesh(self.values) is not None

    def run(self, backward):
        plain = copied(self.values)
        if not self.has_place():
            return Outcome("skipped", "no tensor and no device among the arguments")
        try:
            expected = self.expected(plain)
        except RuntimeError as error:
            return Outcome("refused", f"on one rank: {error}")
        placed, layouts = self.place()
        self.where = f"{self.mesh.axes} {' '.join(layouts)}"
        try:
            actual = self.call_on(self.mesh, placed)
            if not tensors_in(plain) and any(tensor.device.type != "mesh" for tensor in tensors_in(actual)):
                return Outcome("wrong", f"{self.where}: what it makes is not on the mesh")
            wrong = self.differs(placing.whole(actual), expected)
            if wrong:
                return Outcome("wrong", f"{self.where}: {wrong}")
            return self.compare_gradients(actual, placed, expected, plain) if backward else Outcome("passed")
        except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
            return Outcome("refused", " ".join(str(error).split())[:300])

    def differs(self, actual, expected):
        if "empty" not in self.op.name:
            return difference(actual, expected)
        shapes = [[(tensor.shape, tensor.dtype) for tensor in tensors_in(values)] for values in (actual, expected)]
        return "" if shapes[0] == shapes[1] else f"{shapes[0]} instead of {shapes[1]}"

    def compare_gradients(self, actual, placed, expected, plain):
        weights = weights_for(expected, self.seed)
        right = gradients(expected, plain, weights)
        on_mesh = [weight if weight is None or result.device.type != "mesh" else
                   lockstep.distribute(weight, self.mesh, "[]")
                   for result, weight in zip(tensors_in(actual), weights)]
        got = placing.whole(list(gradients(actual, placed, on_mesh)))
        return outcome_of_gradients(got, right, self.where)

    def run_refused(self):
        """For a sample that torch refuses."""
        if not self.has_place():
            return Outcome("skipped", "no tensor and no device among the arguments")
        try:
            self.call(copied(self.values))
            return Outcome("skipped", "torch takes what its sample says that it refuses")
        except Exception:  # noqa: BLE001: whatever torch's own errors are
            pass
        placed, layouts = self.place()
        try:
            self.call_on(self.mesh, placed)
        except Exception:  # noqa: BLE001: whatever torch's own errors are
            return Outcome("passed")
        return Outcome("accepted", f"{self.mesh.axes} {' '.join(layouts)}: torch refuses this call")
