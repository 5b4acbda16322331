"""Four ranks of Gloo that outlive what goes wrong between them: a rank that refuses leaves others waiting, and their
group is of no use after that, so all make another one. What they tell each other goes through a store of their own."""

import datetime
import json

import torch.distributed as dist
from torch.distributed.tensor import debug

RANKS = 4
MESHES = ("a=4", "a=2,b=2")
# A rank that waits for one that refused; what is right takes milliseconds.
PATIENCE = datetime.timedelta(seconds=4)
# Gloo's threads outlive their group: after so many, four other processes go on.
MOST_GROUPS = 40
# For one that is busy with PyTorch's slowest samples; over, it counts as dead.
DEATH = datetime.timedelta(seconds=90)


class Group:
    """This rank's part of it. Every rank makes the same calls in the same order."""

    def __init__(self, rank, port):
        self.rank, self.count, self.told = rank, 0, 0
        self.store = dist.TCPStore("127.0.0.1", port, RANKS, rank == 0, DEATH)
        self.begin()

    def begin(self):
        dist.init_process_group("gloo", store=dist.PrefixStore(f"group {self.count}", self.store), rank=self.rank,
                                world_size=RANKS, timeout=PATIENCE)
        # A mesh's own groups would wait for half an hour, whatever the one they are parts of does.
        dist.distributed_c10d._get_default_timeout = lambda backend: PATIENCE
        self.meshes = {axes: dist.init_device_mesh("cpu", sizes_of(axes)) for axes in MESHES}
        self.count += 1

    def renew(self):
        """Without what DTensor remembers of layouts: it holds the old meshes."""
        debug._clear_sharding_prop_cache()
        dist.destroy_process_group()
        self.begin()

    def everyones(self, value):
        """What each rank says, in ranks' order."""
        self.told += 1
        self.store.set(f"{self.told} {self.rank}", json.dumps(value))
        return [json.loads(self.store.get(f"{self.told} {rank}")) for rank in range(RANKS)]


def sizes_of(axes):
    return tuple(int(axis.split("=")[1]) for axis in axes.split(","))
