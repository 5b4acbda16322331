"""PyTorch's own samples (torch.testing._internal) of each op, in the dtype in which they say most."""

import random

import torch
from torch.testing._internal.common_methods_invocations import op_db

import lockstep
import placing
import trial

DTYPES = (torch.float64, torch.float32, torch.complex128, torch.int64, torch.bool)


def name_of(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def all_ops():
    return sorted(op_db, key=name_of)


def dtype_of(op):
    return next((dtype for dtype in DTYPES if dtype in op.supported_dtypes("cpu")), None)


def draws(op, samples):
    """Whether other seeds give other values, for any of the samples."""
    if "empty" in op.name:
        return False
    if "lowrank" in op.name:  # of another draw singular vectors have other signs, mostly the same ones
        return True

    def differs(sample):
        one = trial.Trial(op, sample, None, None, 0)
        try:
            results = [one.call(trial.copied(one.values), seed) for seed in range(3)]
        except Exception:  # noqa: BLE001: what torch refuses has no values
            return False
        return any(trial.difference(result, results[0]) for result in results[1:])

    return any(differs(sample) for sample in samples)


def drawn_samples(op, seed, most):
    """(sample, number, chance, whether it draws): the same for whoever asks."""
    chance = random.Random(f"{seed} {name_of(op)}")
    backward = takes_gradients(op)
    torch.manual_seed(seed)
    samples = list(op.sample_inputs("cpu", dtype_of(op), requires_grad=backward))
    drawn = draws(op, samples)
    chance.shuffle(samples)
    for number, sample in enumerate(samples[:most]):
        yield sample, number, random.Random(f"{seed} {name_of(op)} {number}"), drawn


def takes_gradients(op):
    return dtype_of(op) == torch.float64 and op.supports_autograd


def outcomes(op, seed, most):
    """Of Lockstep, each sample and each call that torch refuses on a mesh that is drawn."""
    for sample, number, chance, drawn in drawn_samples(op, seed, most):
        mesh = lockstep.mesh(chance.choice(placing.MESHES))
        yield trial.Trial(op, sample, mesh, chance, number, drawn).run(takes_gradients(op))
    if op.error_inputs_func is not None:
        chance = random.Random(f"{seed} {name_of(op)} errors")
        for number, refused in enumerate(list(op.error_inputs("cpu"))[:most]):
            mesh = lockstep.mesh(chance.choice(placing.MESHES))
            yield trial.Trial(op, refused.sample_input, mesh, chance, number).run_refused()
