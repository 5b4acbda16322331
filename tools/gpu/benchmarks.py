"""Part 4: benchmarks, each with its peer in the same call."""
import json
import re
import shutil

from gpu import jobs, machine
from gpu.check import TREE, Failed

# Flavor, compute, samples, tokens of each, steps; 8B and its state fill a GPU of 141 GB, with the activations that fit.
STEPS = [("debugmodel", "float32", 8, 2048, 30), ("debugmodel", "bfloat16", 8, 2048, 30),
         ("1B", "bfloat16", 4, 2048, 15), ("1B", "float8", 4, 2048, 15), ("3B", "bfloat16", 4, 2048, 12),
         ("8B", "bfloat16", 4, 2048, 8), ("8B", "float8", 4, 2048, 8)]
# Beside bfloat16; plain PyTorch, the peer, has no such linear maps.
FLOAT8 = ["--model.converters=quantize.linear.float8", "--quantize.linear.float8.recipe_name=rowwise"]
RECOMPUTED = {"8B": ["--activation_checkpoint.mode=selective", "--activation_checkpoint.selective_ac_option=linear"]}
LEAST_MEBIBYTES = {"3B": 72000, "8B": 131000}
WITHOUT_HOLES = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
PEERS = ("eager", "compiled", "fsdp2")


def kernels(check):
    """Fills and digests; GB/s of what they write or read."""
    size = "1MiB" if check.trial else "*"
    if check.device == "cpu":
        return check.say("  not here: lockstep bench gpu")
    result = check.out / "bench-gpu.json"
    check.run("bench-gpu", [check.binary("lockstep"), "bench", "gpu", "--rows", size, "--json", result])
    rows = []
    for row in json.loads(result.read_text())["rows"]:
        size = re.search(r"_(\d+)([MG])iB$", row["name"])
        gigabytes = int(size[1]) * {"M": 2**20, "G": 2**30}[size[2]] / 1e9 if size else None
        rows.append({"kernel": row["name"], "us": row["ours"],
                     "GB/s": gigabytes / row["ours"] * 1e6 if size else "-", "peer": row["peer_name"],
                     "peer us": row["peer"], "ours/peer": row["ratio"]})
    check.table("kernels", rows)


def words_of(check, case, *more):
    flavor, compute, rows, length, steps = case
    compute, converted = ("bfloat16", FLOAT8) if compute == "float8" else (compute, [])
    return [*jobs.job(check, "bench", flavor, rows, length, steps),
            f"--training.mixed_precision_param={compute}", *converted, *RECOMPUTED.get(flavor, []), *more]


def peer(check, case, mode):
    """Tokens a second of plain PyTorch; nothing if this machine has none."""
    flavor, rows, length, steps = jobs.sizes(check, case[0], *case[2:])
    device = "cpu" if check.trial else check.device
    name, compute = f"peer-{mode}-{flavor}-{case[1]}", "bfloat16" if case[1] == "float8" else case[1]
    words = [TREE / "tools/bench/peers/gpu_llama.py", flavor, compute, rows, length, steps, mode, device]
    done = check.run(name, [check.python, "-W", "ignore", *words], own=False, codes=None,
                     variables=WITHOUT_HOLES)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        if not check.trial:
            check.say(f"  no peer: {name}.txt says why")
        return None
    return json.loads(lines[-1])


def step_row(check, case, has_torch):
    name = f"steps-{case[0]}-{case[1]}"
    ours = jobs.tokens_per_second(jobs.train(check, name, words_of(check, case), variables=WITHOUT_HOLES))
    flavor, samples, length, _ = jobs.sizes(check, case[0], *case[2:])
    row = {"model": flavor, "compute": case[1], "tokens a step": samples * length, "lockstep tok/s": ours}
    for mode in PEERS:
        found = peer(check, case, mode) if has_torch else None
        row[f"{mode} tok/s"] = found["tokens_per_second"] if found else "-"
        row[f"lockstep/{mode}"] = ours / found["tokens_per_second"] if found else "-"
    return row


def steps(check):
    """A case that fails costs its own row alone."""
    rows, problems, has_torch = [], [], machine.torch_version(check) != ""
    if not has_torch:
        check.say(f"  not here: PyTorch as a peer ({check.python} cannot import torch)")
    memory = machine.memory_mebibytes(check)
    for case in STEPS[:1] if check.trial else STEPS:
        if memory is not None and memory < LEAST_MEBIBYTES.get(case[0], 0):
            check.say(f"  not here: {case[0]}, which takes {LEAST_MEBIBYTES[case[0]]} MiB; this GPU has {memory}")
            continue
        try:
            rows.append(step_row(check, case, has_torch))
        except Failed as failure:
            problems.append(str(failure))
    check.table("steps", rows)
    if problems:
        raise Failed("; ".join(problems))


def recording(check):
    """What digests of every op's result cost a step, and everything kept in memory."""
    case, rows = STEPS[1], []
    for mesh, places in ([] if check.trial else [("one device", [])]) + [("dp_shard=2,tp=2", jobs.MESH)]:
        plain = jobs.tokens_per_second(jobs.train(check, "unrecorded", words_of(check, case, *places)))
        row = {"mesh": mesh, "unrecorded tok/s": plain}
        for payload in ("none", "ring:2"):
            folder = check.out / "priced"
            shutil.rmtree(folder, ignore_errors=True)
            words = words_of(check, case, *places, "--record", folder, f"--record.payload={payload}")
            row[f"{payload}: step is longer by"] = plain / jobs.tokens_per_second(
                jobs.train(check, f"recorded-{payload.replace(':', '')}", words))
        rows.append(row)
    check.table("recording", rows)


def run(check):
    problems = []
    for function in (kernels, steps, recording):
        check.say(f"  {function.__name__}")
        try:
            function(check)
        except Failed as failure:  # the other tables are wanted all the same
            problems.append(str(failure))
            check.say(f"  {failure}")
    if problems:
        raise Failed(f"{len(problems)} tables are missing")
