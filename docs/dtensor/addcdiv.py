# torchrun --nproc-per-node 4 addcdiv.py: the gradient of what is divided by an unfinished sum is four times too large
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial, Replicate
mesh = dist.init_device_mesh("cpu", (4,))
part = torch.tensor(1.0 + dist.get_rank(), dtype=torch.float64)  # 1 + 2 + 3 + 4 = 10
divisor = DTensor.from_local(part, mesh, [Partial()]).detach().requires_grad_()
one = DTensor.from_local(torch.ones((), dtype=torch.float64), mesh, [Replicate()]).requires_grad_()
torch.addcdiv(one.detach(), one, divisor).backward()
print("DTensor", one.grad.full_tensor().item(), "one device", 1 / 10)
