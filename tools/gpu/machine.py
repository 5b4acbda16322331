"""Part 0: what the machine is, and that the binaries start there."""
import json
import platform
import re

from gpu.check import Failed


def query(check):
    """Of the first GPU: name, driver, memory."""
    keys = "name,driver_version,memory.total,compute_cap"
    try:
        done = check.run("nvidia-smi", ["nvidia-smi", f"--query-gpu={keys}", "--format=csv,noheader"], own=False)
    except OSError as error:
        raise Failed(f"no GPU is found: {error}")
    return [line.split(", ") for line in done.stdout.strip().splitlines()]


def memory_mebibytes(check):
    """Of the first GPU; None where none is used."""
    if check.device == "cpu" or check.trial:
        return None
    return int(query(check)[0][2].split()[0])


def torch_version(check):
    """Of the peer; "" if its python3 cannot import it."""
    code = "import torch; print(torch.__version__)"
    done = check.run("torch-version", [check.python, "-W", "ignore", "-c", code], own=False, codes=None)
    return done.stdout.strip().splitlines()[-1] if done.returncode == 0 else ""


def run(check):
    facts = {"kernel": platform.release(), "torch": torch_version(check) or "not here: peers in PyTorch are left out"}
    if check.device == "cuda" and not check.trial:
        gpus = query(check)
        facts["gpus"] = [" ".join(gpu) for gpu in gpus]
        check.require(gpus[0][3].startswith("9."), f"{len(gpus)} GPU: {facts['gpus'][0]} (the code is for 9.0)")
        check.require(check.torch is not None and (check.torch / "lib/libtorch_cuda.so").is_file(),
                        f"LibTorch's part for CUDA beside {check.python}")
    else:
        check.say("  no GPU is used")
    doctor = check.run("doctor", [check.binary("lockstep"), "doctor"], codes=None)
    for what in ("LibTorch", "kernels"):
        check.require(re.search(f"^fine +{what} ", doctor.stdout, re.MULTILINE), f"lockstep doctor: {what} fine")
    (check.out / "machine.json").write_text(json.dumps(facts, indent=1) + "\n")
    check.say(f"  torch in Python: {facts['torch']}")
