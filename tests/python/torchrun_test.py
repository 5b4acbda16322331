"""A job under torchrun's elastic agent that loses a rank goes on from its last checkpoint and ends with the bits of one that was
let alone: with all ranks again, with a spare beside the mesh, and with another agent gone for good.
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(sys.argv[1]).resolve()
LOCKSTEP = str(BUILD / "lockstep")
TORCHRUN = str(pathlib.Path(sys.executable).parent / "torchrun")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "LOCKSTEP_JOB_TOKEN": "a token for tests alone",
               "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
PATIENCE = 120

JOB = """[model]
name = "mlp"
width = 8
layers = 1
hidden = 8
[training]
dataset_path = "{folder}/text.txt"
seq_len = 16
local_batch_size = 1
global_batch_size = 12
steps = 600
[parallelism]
data_parallel_shard_degree = 2
elastic = true
[checkpoint]
enable = true
interval = 10
async_mode = "async"
"""


class Run:
    """What a job leaves in a folder of its own."""

    def __init__(self, folder, name):
        self.output, self.result = folder / name, folder / f"{name}.json"
        self.log = open(folder / f"{name}.log", "w+")
        self.command = [LOCKSTEP, "train", str(folder / "job.toml"), "-q", "--json", str(self.result),
                        "--job.dump_folder", str(self.output)]

    def agent(self, *options, mesh=()):
        """One agent of torchrun's, a process that is not waited for."""
        return subprocess.Popen([TORCHRUN, *options, "--no-python", *self.command, *mesh], env=ENVIRONMENT, stdout=self.log,
                                stderr=self.log)

    def wait_for_checkpoint(self, agent):
        deadline = time.monotonic() + PATIENCE
        while not list(self.output.glob("checkpoint/step-*/index.json")):
            if agent.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"nothing was saved\n{self.said()}")
            time.sleep(0.02)

    def said(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    def digest(self):
        return json.loads(self.result.read_text())["state_digest"]


def children(process):
    return [int(child) for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def kill_rank(agent, rank, count):
    ranks = children(agent)
    assert len(ranks) == count, ranks
    os.kill(ranks[rank], signal.SIGKILL)


def ends_well(run, agent, expected, *sayings):
    code = agent.wait(PATIENCE)
    said = run.said()
    assert code == 0, f"exit code {code}\n{said}"
    assert run.digest() == expected, f"other bits\n{said}"
    for saying in sayings:
        assert saying in said, f"{saying} was not said\n{said}"


def restarted(folder, expected):
    run = Run(folder, "restarted")
    agent = run.agent("--standalone", "--nproc-per-node", "2", "--max-restarts", "2")
    run.wait_for_checkpoint(agent)
    kill_rank(agent, 1, 2)
    ends_well(run, agent, expected)


def with_a_spare(folder, expected):
    run = Run(folder, "spare")
    agent = run.agent("--standalone", "--nproc-per-node", "3", "--max-restarts", "2")
    run.wait_for_checkpoint(agent)
    kill_rank(agent, 0, 3)
    ends_well(run, agent, expected, "rank 2 waits as a spare of mesh dp_shard=2")


def wait_for_listener(port):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            socket.create_connection(("localhost", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"nobody listens on port {port}")


def without_the_other_agent(folder, expected):
    run = Run(folder, "shrunk")
    mesh = ["--parallelism.data_parallel_shard_degree", "3"]
    options = ["--nnodes", "1:2", "--nproc-per-node", "2", "--max-restarts", "3", "--rdzv-backend", "c10d", "--rdzv-endpoint",
               "localhost:29437", "--rdzv-id", "lockstep", "--rdzv-conf",
               "last_call_timeout=5,keep_alive_interval=1,keep_alive_max_attempt=2"]
    first = run.agent(*options, mesh=mesh)
    wait_for_listener(29437)  # else the second could keep the store, which ends with it
    second = run.agent(*options, mesh=mesh)
    run.wait_for_checkpoint(first)
    for process in [second.pid, *children(second)]:
        os.kill(process, signal.SIGKILL)
    ends_well(run, first, expected, "rank 3 waits as a spare of mesh dp_shard=3")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text.txt").write_text(", ".join(f"the cat {i * i % 97} sat on the mat" for i in range(400)))
        (folder / "job.toml").write_text(JOB.format(folder=folder))
        alone = Run(folder, "alone")
        subprocess.run(alone.command, env=ENVIRONMENT, check=True)
        for test in (restarted, with_a_spare, without_the_other_agent):
            test(folder, alone.digest())
            print(f"torchrun: {test.__name__}: equal bits", flush=True)


main()
