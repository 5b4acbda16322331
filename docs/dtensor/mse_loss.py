# torchrun --nproc-per-node 4 mse_loss.py: the mean over shards of unequal sizes weighs each shard alike
import torch
import torch.distributed as dist
from torch.distributed.tensor import Shard, distribute_tensor
mesh = dist.init_device_mesh("cpu", (4,))
x = torch.arange(7.0)  # 2, 2, 2 and 1 element; with a rank that has none the loss is no number
cut = distribute_tensor(x, mesh, [Shard(0)])
loss = torch.nn.functional.mse_loss
print("DTensor", loss(cut, 0 * cut).full_tensor().item(), "one device", loss(x, 0 * x).item())
