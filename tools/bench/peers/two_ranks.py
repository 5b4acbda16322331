"""Two Python processes that work in step: the peer of `lockstep bench collectives` and `bench processes`.

Every line of stdin is a number: so many times the work is done in both, then a dot is written to stdout."""
import os
import sys
import tempfile


def connect(rank, path):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % len(os.sched_getaffinity(0))]})
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)


def run(make):
    """`make(rank)` gives what a rank does each time."""
    path = tempfile.mktemp(prefix="lockstep-gloo-")
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(write)
        connect(1, path)
        work = make(1)
        while count := os.read(read, 8):
            for _ in range(int.from_bytes(count, "little")):
                work()
        os._exit(0)
    os.close(read)
    connect(0, path)
    work = make(0)
    for line in sys.stdin:
        os.write(write, int(line).to_bytes(8, "little"))
        for _ in range(int(line)):
            work()
        os.write(1, b".")
