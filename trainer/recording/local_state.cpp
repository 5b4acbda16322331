#include "trainer/recording/local_state.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <string_view>

#include "core/error.h"
#include "replay/capture/recorded_tensor.h"
#include "runtime/plain/lazy_copy.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

/// Calls visit(name, shard) for each tensor of the state that the `index`-th rank of this process has a part of.
template <class Visit>
void for_each_shard(const TrainingState& state, size_t index, const Visit& visit) {
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) {
      const auto& mesh = layout_of(tensor).mesh();
      const int here = mesh.local_index(mesh.whole().local_ranks()[index]);
      if (here >= 0) visit(prefix + entry.name, sharded(tensor).shards()->whole()[static_cast<size_t>(here)]);
    }
}

void load(const replay::RecordedTensor& tensor, at::Tensor& shard) {
  if (tensor.dtype != static_cast<int8_t>(shard.scalar_type()) || c10::IntArrayRef(tensor.sizes) != shard.sizes() ||
      tensor.bytes.size() != shard.nbytes())
    fail<FileError>("the recorded state has {} of {}, the job makes it {}", tensor.name,
                    c10::str(c10::IntArrayRef(tensor.sizes)), c10::str(shard.sizes()));
  before_write(shard);
  shard.copy_(
      at::from_blob(const_cast<std::byte*>(tensor.bytes.data()), tensor.sizes, shard.options().device(c10::kCPU)));
}

}  // namespace

std::vector<replay::RecordedTensor> local_state(const TrainingState& state, size_t index) {
  std::vector<replay::RecordedTensor> tensors;
  for_each_shard(state, index, [&](const std::string& name, const at::Tensor& shard) {
    tensors.push_back(replay::recorded_tensor(name, shard));
  });
  return tensors;
}

void load_local_state(const std::vector<replay::RecordedTensor>& tensors, TrainingState& state, size_t index) {
  const at::NoGradGuard no_grad;
  std::map<std::string_view, const replay::RecordedTensor*> recorded;
  for (const auto& tensor : tensors) recorded[tensor.name] = &tensor;
  for_each_shard(state, index, [&](const std::string& name, at::Tensor shard) {
    const auto found = recorded.extract(name);
    if (found.empty()) fail<FileError>("the recorded state has no {}", name);
    load(*found.mapped(), shard);
  });
  if (!recorded.empty())
    fail<FileError>("the recorded state has {}, which the job does not make", recorded.begin()->first);
}

}  // namespace lockstep::trainer
