"""All-reduces of 4 bytes by Gloo between two processes, for `lockstep bench collectives` (LOCKSTEP_TORCH_PYTHON).

Every line of stdin is a number: so many all-reduces are made, then a dot is written."""
import os
import sys
import tempfile


def connect(rank, path):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
    value = torch.ones(1)
    return lambda: dist.all_reduce(value)


def main():
    path = tempfile.mktemp(prefix="lockstep-gloo-")
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(write)
        all_reduce = connect(1, path)
        while count := os.read(read, 8):
            for _ in range(int.from_bytes(count, "little")):
                all_reduce()
        os._exit(0)
    os.close(read)
    all_reduce = connect(0, path)
    for line in sys.stdin:
        os.write(write, int(line).to_bytes(8, "little"))
        for _ in range(int(line)):
            all_reduce()
        os.write(1, b".")


main()
