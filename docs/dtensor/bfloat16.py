# torchrun --nproc-per-node 4 bfloat16.py: a cast rounds each rank's summand, and not their sum
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial
mesh = dist.init_device_mesh("cpu", (4,))
part = torch.tensor(64.25 if dist.get_rank() < 3 else 63.25)  # their sum is 256, which bfloat16 holds
total = DTensor.from_local(part, mesh, [Partial()])
print("DTensor", total.bfloat16().full_tensor().item(), "one device", torch.tensor(256.0).bfloat16().item())
