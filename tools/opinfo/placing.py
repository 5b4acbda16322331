"""Draws layouts and brings tensors to meshes in them, with values that a wrong rank or offset would show."""

import itertools

import torch
from torch.utils import _pytree as pytree

import lockstep

MESHES = ("a=2", "a=3", "a=4", "a=2,b=2", "a=3,b=2")


def summable(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def draw_layout(random, mesh, tensor):
    """Any placement of each axis; at most one axis holds unfinished sums."""
    names = [axis.split("=")[0] for axis in mesh.axes.split(",")]
    kinds = ["R"] + [f"S({dim})" for dim in range(tensor.dim())] * 2
    placements = [random.choice(kinds) for _ in names]
    if summable(tensor) and random.random() < 0.15:
        placements[random.randrange(len(names))] = "P(sum)"
    return "[" + ", ".join(f"{name}={placement}" for name, placement in zip(names, placements)) + "]"


def noise_like(shard, coordinates):
    """Integers: what they are added to keeps its bits where it is one, too."""
    generator = torch.Generator().manual_seed(hash(coordinates) % (1 << 31))
    return torch.randint(-3, 4, shard.shape, generator=generator).to(shard.dtype)


def placements_of(layout):
    """ "[a=S(0), b=R]" as ["S(0)", "R"]."""
    return [part.split("=", 1)[1] for part in layout[1:-1].split(", ")]


def summand_of(value, placements, sizes, rank):
    """What `rank` adds to the sum that `value` is there: its own on every rank, and none of them the value."""
    coordinates = list(itertools.product(*map(range, sizes)))[rank]
    axis = placements.index("P(sum)")
    group = tuple(-1 if placements[i] in ("R", "P(sum)") else c for i, c in enumerate(coordinates))
    others = [noise_like(value, (*group, member)) for member in range(1, sizes[axis])]
    return value - sum(others) if coordinates[axis] == 0 else others[coordinates[axis] - 1]


def with_summands(tensor, mesh, layout):
    """Unfinished sums whose summands differ on every rank, and none of which is the value."""
    whole = lockstep.shards_of(lockstep.distribute(tensor, mesh, layout))
    shards = [summand_of(value, placements_of(layout), mesh.sizes, rank) for rank, value in enumerate(whole)]
    return lockstep.from_shards(shards, mesh, layout, list(tensor.shape), tensor.dtype)


def place(random, tensor, mesh):
    layout = draw_layout(random, mesh, tensor)
    if "P(sum)" in layout and tensor.numel() > 0:
        placed = with_summands(tensor.detach(), mesh, layout)
    else:
        placed = lockstep.distribute(tensor.detach(), mesh, layout)
    return placed.requires_grad_(tensor.requires_grad)


def place_all(random, values, mesh):
    """Every tensor in a tree of arguments, and the layouts' texts."""
    layouts = []

    def one(value):
        if not isinstance(value, torch.Tensor):
            return value
        placed = place(random, value, mesh)
        layouts.append(lockstep.layout_of(placed))
        return placed

    return pytree.tree_map(one, values), layouts


def whole(values):
    """Every tensor on a mesh in a tree as a plain one."""
    return pytree.tree_map(
        lambda value: lockstep.gather(value.detach()) if isinstance(value, torch.Tensor) and value.device.type == "mesh"
        else value, values)
