"""Part 3: training on the GPU, one device and a simulated 2 x 2 mesh: what the README promises, as far as native numerics
keep it, and under canonical numerics with the bits of a CPU."""
import shutil

from gpu import jobs


def close(a, b, bound):
    return all(abs(x - y) <= bound * abs(y) for x, y in zip(a, b))


def repeats(check, name, words):
    """Two runs of the same job: the same bits, and a loss that falls."""
    first, second = (jobs.train(check, f"{name}-{turn}", words) for turn in (1, 2))
    check.require(first["state_digest"] == second["state_digest"],
                    f"{name}: the same job twice ends in the same bits, {first['state_digest']}")
    seen = jobs.losses(first)
    check.require(check.trial or seen[-1] < 0.8 * seen[0], f"{name}: the loss falls, {seen[0]:.3f} to {seen[-1]:.3f}")
    return first


def one_device_and_mesh(check):
    alone = repeats(check, "one-device", jobs.job(check, "one-device"))
    mesh = repeats(check, "mesh", jobs.job(check, "mesh", rows=2) + jobs.MESH)
    check.require(close(jobs.losses(mesh)[:5], jobs.losses(alone)[:5], 1e-3),
                    "the mesh's first losses are one device's but for rounding")
    cpu = jobs.train(check, "on-a-cpu", jobs.job(check, "on-a-cpu", steps=2) + ["--training.device=cpu"])
    check.require(close(jobs.losses(cpu)[:2], jobs.losses(alone)[:2], 1e-4), "and a CPU's")
    bf16 = repeats(check, "bf16", jobs.job(check, "bf16", rows=2) + jobs.MESH +
                   ["--training.mixed_precision_param=bfloat16"])
    check.require(close(jobs.losses(bf16)[:1], jobs.losses(alone)[:1], 2e-2), "and bfloat16's, within 2e-2")
    return alone


def few_bits(check):
    """Float8 factors: a CPU's bits; and native ones, which repeat theirs."""
    words = ["--model.converters=quantize.linear.float8", "--numerics.mode=canonical"]
    def state(name, *more):
        return jobs.train(check, f"float8-{name}", [*jobs.job(check, name, length=32, steps=1), *words, *more])["state_digest"]
    cpu = state("cpu", "--training.device=cpu")
    check.require(state("gpu") == cpu, f"canonical numerics of float8 factors: a CPU's state, {cpu}")
    for recipe in ("tensorwise", "rowwise", "rowwise_with_gw_hp"):  # by eight-bit products
        repeats(check, f"float8-{recipe}", [*jobs.job(check, f"float8-{recipe}"), *words[:1], "--training.mixed_precision_param=bfloat16",
                                            f"--quantize.linear.float8.recipe_name={recipe}"])


def offloaded(check):
    """Optimizer state in the host's memory: the bits of one that is not."""
    words = jobs.job(check, "kept", rows=2)
    kept = jobs.train(check, "kept", words)["state_digest"]
    check.require(jobs.train(check, "offloaded", [*words, "--optimizer.offload_state=true"])["state_digest"] == kept,
                  f"optimizer state in the host's memory: the same bits, {kept}")


def canonical(check):
    """A CPU's bits, on a mesh and in a replay."""
    for compute in ("float32", "bfloat16"):
        words = [f"--training.mixed_precision_param={compute}", "--numerics.mode=canonical"]
        def train(name, *more, steps=1 if check.trial else 3):
            name = f"canonical-{compute}-{name}"
            return jobs.train(check, name, [*jobs.job(check, name, length=128, steps=steps), *words, *more])
        cpu = train("cpu", "--training.device=cpu")["state_digest"]
        check.require(train("alone")["state_digest"] == cpu, f"canonical numerics in {compute}: a CPU's state, {cpu}")
        folder = check.out / "canonical-traces"
        shutil.rmtree(folder, ignore_errors=True)
        mesh = train("mesh", f"--training.local_batch_size={1 if check.trial else 2}", *jobs.MESH, "--record", folder, "-q")
        check.require(mesh["state_digest"] == cpu, "and a 2 x 2 mesh has it")
        done = check.run(f"canonical-replay-{compute}",
                         [check.binary("lockstep"), "replay", folder, "--rank", 1, "--device", "cpu"])
        check.require("identical" in done.stdout, "whose recording replays on a CPU bit by bit")


def verify(check):
    for mesh, compute in (("dp_shard=2,tp=2", "float32"), ("cp=2,tp=2", "float32"), ("tp=3", "float32"),
                          ("dp_shard=2,tp=2", "bfloat16"), ("dp_shard=2,tp=2", "canonical")):
        words = [*jobs.job(check, "verify", length=64), "--meshes", mesh, f"--verify.steps={1 if check.trial else 2}",
                 "--numerics.mode=canonical" if compute == "canonical" else f"--training.mixed_precision_param={compute}"]
        done = check.run(f"verify-{mesh.replace(',', '-')}-{compute}", [check.binary("lockstep"), "verify", *words])
        check.require("agrees" in done.stdout, f"lockstep verify: {mesh} in {compute} agrees with one device")


def resume(check, alone):
    """Half of a run, saved; the rest, from there."""
    steps = 2 if check.trial else 10
    shutil.rmtree(check.out / "resumed", ignore_errors=True)
    words = jobs.job(check, "resumed") + ["--checkpoint.enable=true", f"--checkpoint.interval={steps}",
                                            f"--lr_scheduler.total_steps={len(alone['steps'])}"]
    jobs.train(check, "resumed-first", [*words, f"--training.steps={steps}"])
    rest = jobs.train(check, "resumed-rest", words)
    check.require(rest["state_digest"] == alone["state_digest"], "resumed from a checkpoint: the same bits")


def replay(check):
    folder = check.out / "traces"
    shutil.rmtree(folder, ignore_errors=True)
    jobs.train(check, "recorded", jobs.job(check, "recorded", rows=2, length=128, steps=2) +
               [*jobs.MESH, "--record", folder, "-q"])
    for rank in range(4):
        words = [check.binary("lockstep"), "replay", folder, "--rank", rank]
        here = check.run(f"replay-{rank}", words)
        check.require("identical" in here.stdout, f"replay of rank {rank}: {here.stdout.strip().splitlines()[-1]}")
    if check.device == "cuda":
        there = check.run("replay-cpu", [*words, "--device", "cpu"])
        check.require("within bound" in there.stdout, "replay on the CPU is within bound")


def processes(check, alone):
    """Over NCCL: one process; and two on one GPU, which NCCL refuses."""
    if check.trial and check.device == "cuda":
        return check.say("  not tried: processes, since host memory plays no NCCL")
    one = jobs.train(check, "one-process", jobs.job(check, "one-process"), before=["launch", "-n", "1"])
    check.require(one["state_digest"] == alone["state_digest"], "a launched process of its own: the same bits")
    words = [check.binary("lockstep"), "launch", "-n", "2", "train", *jobs.job(check, "two", rows=2),
             "--comm.init_timeout_seconds=30"]
    done = check.run("two-processes", words, limit=90, codes=(0,) if check.device == "cpu" else (0, 4))
    what = "train together" if done.returncode == 0 else "on one GPU end with exit code 4, which NCCL is named in"
    check.require(done.returncode == 0 or "NCCL" in done.stdout, f"two processes {what}")


def run(check):
    alone = one_device_and_mesh(check)
    canonical(check)
    few_bits(check)
    offloaded(check)
    verify(check)
    resume(check, alone)
    replay(check)
    processes(check, alone)
