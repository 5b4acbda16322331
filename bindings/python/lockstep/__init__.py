"""Tensors on meshes of simulated ranks, from Python: what torch computes with them, Lockstep checks and runs.

    import lockstep
    mesh = lockstep.mesh("dp=2,tp=2")
    x = lockstep.distribute(torch.rand(8, 6), mesh, "[dp=S(0), tp=R]")
    y = torch.softmax(x @ x.t(), dim=1)
    print(lockstep.layout_of(y), lockstep.gather(y))

The library is build/release/liblockstep_python.so, or what LOCKSTEP_LIBRARY names. torch must be of the version that it
was built with. A tensor on a mesh has the device type "mesh", global sizes, and one shard per rank; errors for users are
RuntimeErrors whose text says what to do.
"""

import functools
import os
import pathlib
import types

import torch

_TREE = pathlib.Path(__file__).resolve().parents[3]
_LIBRARY = os.environ.get("LOCKSTEP_LIBRARY", str(_TREE / "build" / "release" / "liblockstep_python.so"))
torch.ops.load_library(_LIBRARY)
_ops = torch.ops.lockstep


@functools.cache
def _register_device():
    """What torch asks of a device type of its own before it makes a tensor there; all ranks are in this process."""
    device = types.ModuleType("torch.mesh", "The device of tensors on meshes.")
    device.is_available = device.is_initialized = lambda: True
    device.device_count = lambda: 1
    device.current_device = lambda: 0
    device._is_in_bad_fork = lambda: False
    device.manual_seed_all = lambda seed: None  # work_on() has the seed
    torch._register_device_module("mesh", device)


class Mesh:
    """An array of ranks with named axes, all in this process. Meshes of equal arguments are one."""

    def __init__(self, axes, canonical=False, float64=False, strict=False):
        self.axes = axes
        self.number = _ops.mesh(axes, canonical, float64, strict)
        _register_device()
        self.sizes = [int(axis.split("=")[1]) for axis in axes.split(",") if axis]

    def __repr__(self):
        return f"lockstep.mesh({self.axes!r})"


def mesh(axes, canonical=False, float64=False, strict=False):
    """The mesh of a text such as "dp=2,tp=2".

    canonical: results have the bits of one device; float64: every floating shard is stored in double, and rounded
    nowhere else; strict: moving data that nobody asked for is an error.
    """
    return Mesh(axes, canonical, float64, strict)


def work_on(mesh, seed=0):
    """From here on new tensors of device "mesh" lie on this mesh, and random ops draw from this seed, from the start:
    the same values on every mesh."""
    _ops.work_on(mesh.number, seed)


def distribute(tensor, mesh, layout):
    """The values of a plain tensor on a mesh, copied. Not differentiable: it makes a leaf."""
    return _ops.distribute(tensor, mesh.number, layout)


def from_shards(shards, mesh, layout, sizes, dtype):
    """A tensor of what each rank of the mesh has, in rank order."""
    return _ops.from_shards(shards, mesh.number, layout, sizes, dtype)


def redistribute(tensor, layout):
    """The same values in another layout; differentiable."""
    return _ops.redistribute(tensor, layout)


def gather(tensor):
    """The whole value as a plain tensor."""
    return _ops.gather(tensor)


def layout_of(tensor):
    """Its layout's text, such as "[dp=S(0), tp=P(sum)]"."""
    return _ops.layout_of(tensor)


def shards_of(tensor):
    """What each rank has, in rank order: views."""
    return _ops.shards_of(tensor)
