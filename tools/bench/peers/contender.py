"""A Python program that works when it is told to, as the peer of a `lockstep bench`: one process, or two that work in step.

Every line of stdin is a number: so many times the work is done, then a line tells the numbers that it gave, losses of
steps. The line "memory" is answered by the most resident memory that the first process had, in bytes."""
import ctypes
import os
import resource
import signal
import socket
import sys


def prepare(rank, ranks, port):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port))
    cores = sorted(os.sched_getaffinity(0))
    if ranks > 1:  # each process on a core of its own: else the system may keep both on one
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def follow(commands, work):
    while count := os.read(commands, 8):
        for _ in range(int.from_bytes(count, "little")):
            work()
    os._exit(0)


def answer(line, work, tell_other):
    if line == "memory":
        return str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    tell_other(int(line))
    given = [work() for _ in range(int(line))]
    return " ".join(repr(number) for number in given if number is not None)


def run(make, ranks=1):
    """`make(rank)` gives what a rank does each time."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints is no answer
    port = free_port()
    read, write = os.pipe()
    if ranks == 2 and os.fork() == 0:
        os.close(write)
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: whatever ends the first process
        prepare(1, 2, port)
        follow(read, make(1))
    os.close(read)
    prepare(0, ranks, port)
    work = make(0)
    tell_other = (lambda count: os.write(write, count.to_bytes(8, "little"))) if ranks == 2 else (lambda count: None)
    for line in sys.stdin:
        print(answer(line.strip(), work, tell_other), file=out, flush=True)
    os._exit(0)
