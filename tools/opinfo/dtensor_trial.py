"""One sample of an op on PyTorch's DTensor, on this rank of four, in layouts drawn as Lockstep's are."""

import dataclasses

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.utils import _pytree as pytree

import dtensor_group
import placing
import trial


class DTensorMesh:
    """What placing needs to know of a mesh."""

    def __init__(self, axes):
        self.axes = axes
        self.sizes = list(dtensor_group.sizes_of(axes))

    def ranks(self):
        return torch.Size(self.sizes).numel()


def placement_of(text):
    if text == "R":
        return Replicate()
    return Partial("sum") if text == "P(sum)" else Shard(int(text[2:-1]))


def place(tensor, layout, mesh, device_mesh, rank):
    texts = placing.placements_of(layout)
    kept = [placement_of(text) for text in texts]
    whole = [Replicate() if text == "P(sum)" else placement for text, placement in zip(texts, kept)]
    placed = distribute_tensor(tensor.detach(), device_mesh, whole)
    if "P(sum)" in texts and tensor.numel() > 0:
        local = placing.summand_of(placed.to_local(), texts, mesh.sizes, rank)
        placed = DTensor.from_local(local, device_mesh, kept, run_check=False, shape=tensor.shape,
                                    stride=tensor.contiguous().stride())
    return placed.detach().requires_grad_(tensor.requires_grad)


def whole(values):
    return pytree.tree_map(lambda value: value.detach().full_tensor() if isinstance(value, DTensor) else value, values)


class DTensorTrial:
    """The sample of a trial.Trial: the same mesh, layouts and weights."""

    def __init__(self, op, sample, axes, random, seed, draws=False):
        self.plain = trial.Trial(op, sample, DTensorMesh(axes), random, seed, draws)
        self.layouts = [placing.draw_layout(random, self.plain.mesh, tensor)
                        for tensor in trial.tensors_in(self.plain.values)]

    def run(self, group, backward):
        values = trial.copied(self.plain.values)
        if not trial.tensors_in(values):
            return trial.Outcome("skipped", "no tensor among the arguments")
        if self.plain.draws:
            return trial.Outcome("skipped", "draws: DTensor's random numbers are its own")
        try:
            expected = self.plain.call(values)
        except Exception as error:  # noqa: BLE001: of other machines: a kernel made while it runs, say
            return trial.Outcome("skipped", f"plain torch refuses: {error}"[:300])
        try:
            mesh = group.meshes[self.plain.mesh.axes]
            outcome = self.on_rank(group.rank, mesh, backward, expected, values)
        except Exception as error:  # noqa: BLE001: whatever DTensor refuses with
            outcome = trial.Outcome("refused", " ".join(str(error).split())[:300])
        return self.of_all_ranks(group, outcome)

    @staticmethod
    def of_all_ranks(group, outcome):
        """Wrong where one rank is, unless one refused."""
        said = group.everyones(dataclasses.asdict(outcome))
        worst = next(kind for kind in ("refused", "wrong", "passed") if any(one["kind"] == kind for one in said))
        if worst == "refused":
            group.renew()
        return trial.Outcome(**next(one for one in said if one["kind"] == worst))

    def on_rank(self, rank, device_mesh, backward, expected, plain):
        layouts = iter(self.layouts)
        placed = pytree.tree_map(
            lambda value: place(value, next(layouts), self.plain.mesh, device_mesh, rank)
            if isinstance(value, torch.Tensor) else value, trial.copied(self.plain.values))
        where = f"{self.plain.mesh.axes} {' '.join(self.layouts)}"
        first, rest, named = placed
        actual = self.plain.op.op(first, *rest, **named)
        wrong = self.plain.differs(whole(actual), expected)
        if wrong or not backward:
            return trial.Outcome("wrong", f"{where}: {wrong}") if wrong else trial.Outcome("passed")
        weights = trial.weights_for(expected, self.plain.seed)
        right = trial.gradients(expected, plain, weights)
        on_mesh = [None if weight is None else distribute_tensor(weight, device_mesh) for weight in weights]
        got = whole(list(trial.gradients(actual, placed, on_mesh)))
        return trial.outcome_of_gradients(got, right, where)
