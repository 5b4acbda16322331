"""--pack: binaries without symbols, and the shared libraries that they need and LibTorch, CUDA and the C library do not
bring, to be carried to a machine with a GPU."""
import pathlib
import re
import shutil
import subprocess

PROGRAMS = ["lockstep", "lockstep-engine", "tests/test_rng", "tests/test_trainer"]
# What comes with the system, with torch, or with CUDA.
LEFT_OUT = re.compile(r"/(ld-linux|lib(c|m|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s|torch\w*|c10\w*|gomp|cud\w+|cupti|"
                      r"nccl|nv\w+))[-.]")


def libraries(program):
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    found = (pathlib.Path(path) for path in re.findall(r"=> (/\S+)", listed))
    return {path for path in found if not LEFT_OUT.search(str(path))}


def make(check, folder):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lib").mkdir(parents=True)
    needed = set()
    for name in PROGRAMS:
        source = check.folder / name
        if not source.is_file():
            print(f"gpu_check: {source} is not there: cmake --preset cuda && cmake --build build/cuda")
            return 1
        subprocess.run(["strip", "-o", folder / pathlib.Path(name).name, source], check=True)
        needed |= libraries(source)
    for library in sorted(needed):
        shutil.copyfile(library, folder / "lib" / library.name)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {len(PROGRAMS)} programs, {len(needed)} libraries, {size / 2**20:.0f} MiB")
    return 0
