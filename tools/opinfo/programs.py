"""Random programs of a few ops, as ops with samples: what trial.Trial takes."""

import random
import types

import torch

OPS = {
    "add": lambda a, b, dim: a + b,
    "sub": lambda a, b, dim: a - b,
    "mul": lambda a, b, dim: a * b,
    "tanh": lambda a, b, dim: torch.tanh(a),
    "sin": lambda a, b, dim: torch.sin(a),
    "relu": lambda a, b, dim: torch.relu(a),
    "softmax": lambda a, b, dim: torch.softmax(a, dim),
    "sum": lambda a, b, dim: a.sum(dim, keepdim=True),
    "mean": lambda a, b, dim: a.mean(dim, keepdim=True),
    "amax": lambda a, b, dim: a.amax(dim, keepdim=True),
    "cumsum": lambda a, b, dim: torch.cumsum(a, dim),
    "transpose": lambda a, b, dim: a.transpose(0, dim),
    "matmul": lambda a, b, dim: torch.tanh(a @ b.transpose(-2, -1)),
    "cat": lambda a, b, dim: torch.cat([a, b], dim),
    "narrow": lambda a, b, dim: a.narrow(dim, 0, (a.shape[dim] + 1) // 2),
    "flatten": lambda a, b, dim: a.flatten().view(-1, a.shape[-1]),
    "where": lambda a, b, dim: torch.where(a > 0, a, b),
    "addcdiv": lambda a, b, dim: torch.addcdiv(a, b, b * b + 1),
    "layer_norm": lambda a, b, dim: torch.nn.functional.layer_norm(a, a.shape[-1:]),
}


class Program:
    """2 to 12 steps on three operands: each takes one or two values that are there, and makes one."""

    supports_autograd = True
    variant_test_name = ""

    def __init__(self, number):
        self.name = f"program {number}"
        chance = random.Random(number)
        sizes = [chance.randint(1, 6), chance.randint(1, 6)]
        generator = torch.Generator().manual_seed(number)
        self.operands = [torch.randn(sizes, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(3)]
        self.steps = []
        values = list(self.operands)
        for _ in range(chance.randint(2, 12)):
            step = self.drawn_step(chance, values)
            if step is not None:
                self.steps.append(step)
                values.append(self.run_step(step, values))

    @staticmethod
    def run_step(step, values):
        name, a, b, dim = step
        return OPS[name](values[a], values[b], dim)

    @staticmethod
    def drawn_step(chance, values):
        """None where the drawn op does not take the drawn values."""
        step = chance.choice(list(OPS)), chance.randrange(len(values)), chance.randrange(len(values)), chance.randrange(2)
        try:
            result = Program.run_step(step, values)
        except (RuntimeError, IndexError):
            return None
        return step if 0 < result.numel() <= 400 and result.dim() == 2 else None

    def op(self, *operands):
        values = list(operands)
        for step in self.steps:
            values.append(self.run_step(step, values))
        return values[-1]

    def sample(self):
        return types.SimpleNamespace(input=self.operands[0], args=tuple(self.operands[1:]), kwargs={})

    def text(self):
        return "; ".join(f"v{number + 3} = {name}(v{a}, v{b}, {dim})"
                         for number, (name, a, b, dim) in enumerate(self.steps))
