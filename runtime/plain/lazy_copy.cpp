#include "runtime/plain/lazy_copy.h"

#include <ATen/Functions.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/plain/plain_tensors.h"

namespace lockstep {
namespace {

using c10::StorageImpl;

using Copies = std::unordered_map<StorageImpl*, c10::weak_intrusive_ptr<StorageImpl>>;

/// The lazy copies that still share their source's bytes.
struct Sharing {
  std::mutex mutex;
  std::unordered_map<StorageImpl*, c10::intrusive_ptr<StorageImpl>> source_of;  ///< copy -> source, kept alive
  std::unordered_map<StorageImpl*, Copies> copies_of;                           ///< source -> copies
};

std::atomic<int64_t> sharing_count = 0;

Sharing& sharing() {
  static auto* table = new Sharing;  // storages may die after static objects
  return *table;
}

/// Takes a copy out of the table; gives its source, so that nothing is freed under the lock.
c10::intrusive_ptr<StorageImpl> forget(StorageImpl* copy) {
  auto& table = sharing();
  const auto found = table.source_of.find(copy);
  if (found == table.source_of.end()) return {};
  auto source = std::move(found->second);
  table.source_of.erase(found);
  auto& copies = table.copies_of[source.get()];
  copies.erase(copy);
  if (copies.empty()) table.copies_of.erase(source.get());
  --sharing_count;
  return source;
}

/// Runs when the storage of a lazy copy ends, or its bytes are replaced.
void end_of_copy(void* copy) {
  c10::intrusive_ptr<StorageImpl> source;
  const std::lock_guard lock(sharing().mutex);
  source = forget(static_cast<StorageImpl*>(copy));
}

/// A tensor around a storage, where `like` lies in its own.
at::Tensor around(c10::Storage storage, const at::Tensor& like) {
  const c10::DispatchKeySet keys(c10::legacyExtractDispatchKey(like.key_set()));
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, like.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  return tensor;
}

/// Gives a lazy copy bytes of its own.
void materialize(const c10::Storage& storage) {
  const PlainTensors guard;
  auto bytes = around(storage, at::empty({0}, at::dtype(c10::kByte).device(storage.device())));
  bytes.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<int64_t>(storage.nbytes())});
  const auto fresh = bytes.clone();
  auto data = fresh.storage().unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr());
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(data));  // ends the sharing
}

}  // namespace

at::Tensor lazy_copy(const at::Tensor& source) {
  const PlainTensors guard;
  if (source.is_non_overlapping_and_dense() && source.nbytes() < source.storage().nbytes()) return source.clone();
  auto original = c10::intrusive_ptr<StorageImpl>::reclaim_copy(source.storage().unsafeGetStorageImpl());
  {
    const std::lock_guard lock(sharing().mutex);
    const auto found = sharing().source_of.find(original.get());
    if (found != sharing().source_of.end()) original = found->second;
  }
  auto copy = c10::make_intrusive<StorageImpl>(c10::StorageImpl::use_byte_size_t(), original->nbytes(), c10::DataPtr(),
                                               original->allocator(), /*resizable=*/false);
  copy->set_data_ptr_noswap(
      c10::DataPtr(const_cast<void*>(original->data()), copy.get(), &end_of_copy, original->device()));
  {
    const std::lock_guard lock(sharing().mutex);
    sharing().copies_of[original.get()].emplace(copy.get(), copy);
    sharing().source_of.emplace(copy.get(), std::move(original));
    ++sharing_count;
  }
  return around(c10::Storage(std::move(copy)), source);
}

void before_write(const at::Tensor& tensor) {
  if (sharing_count.load(std::memory_order_acquire) == 0) return;
  std::vector<c10::Storage> sharers;
  {
    auto& table = sharing();
    const std::lock_guard lock(table.mutex);
    auto* storage = tensor.storage().unsafeGetStorageImpl();
    if (table.source_of.contains(storage)) sharers.push_back(tensor.storage());
    if (const auto found = table.copies_of.find(storage); found != table.copies_of.end())
      for (const auto& [address, copy] : found->second)
        if (auto alive = copy.lock()) sharers.emplace_back(std::move(alive));
  }
  for (const auto& storage : sharers) materialize(storage);
}

}  // namespace lockstep
