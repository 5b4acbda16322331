// torch.save's archives (torch/serialization.py, torch/_utils.py in PyTorch 2.11): LibTorch's reader of archives takes
// records, but its unpickler believes what data.pkl says of the numbers beside it.
#include "trainer/weights/torch_checkpoint/stored_tensor.h"

#include <ATen/Functions.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>

#include <map>
#include <optional>
#include <stdexcept>

#include "core/error.h"
#include "trainer/weights/torch_checkpoint/pickle.h"

namespace lockstep::trainer {
namespace {

using Value = Pickle::Value;
using Kind = Pickle::Kind;

constexpr int64_t kLongestPickle = 1 << 20;

/// A part of a file, as a file.
class Part final : public caffe2::serialize::ReadAdapterInterface {
 public:
  Part(const RandomAccessFile& file, int64_t offset, int64_t length) : file_(file), offset_(offset), length_(length) {
    if (offset > file.size() || length > file.size() - offset)
      fail<FileError>("{}: has {} bytes; {} from byte {} on were saved. It is cut short.", file.path(), file.size(),
                      length, offset);
  }
  size_t size() const override { return static_cast<size_t>(length_); }
  size_t read(uint64_t at, void* into, size_t count, const char* /*what*/) const override {
    if (at > size()) return 0;
    count = std::min(count, size() - at);
    file_.read(offset_ + static_cast<int64_t>(at), {static_cast<std::byte*>(into), count});
    return count;
  }

 private:
  const RandomAccessFile& file_;
  int64_t offset_, length_;
};

struct StoredType {
  c10::ScalarType dtype;
  const char* storage;
};
const std::map<std::string, StoredType> kTypes{{"float32", {c10::kFloat, "torch FloatStorage"}},
                                               {"float16", {c10::kHalf, "torch HalfStorage"}},
                                               {"bfloat16", {c10::kBFloat16, "torch BFloat16Storage"}}};

/// What data.pkl says: numbers from `offset` on, `strides` apart, of `count` in a record.
struct Described {
  std::string storage, key;
  int64_t count = 0, offset = 0;
  std::vector<int64_t> sizes, strides;
};

const Value* item(const Value* sequence, size_t place, Kind kind) {
  const bool is_there = sequence && sequence->kind == Kind::kSequence && place < sequence->items.size();
  return is_there && sequence->items[place]->kind == kind ? sequence->items[place] : nullptr;
}

std::optional<std::vector<int64_t>> numbers(const Value* sequence) {
  if (!sequence) return {};
  std::vector<int64_t> all;
  for (const auto* entry : sequence->items) {
    if (entry->kind != Kind::kNumber || entry->number < 0) return {};
    all.push_back(entry->number);
  }
  return all;
}

/// torch._utils._rebuild_tensor_v2(("storage", torch.FloatStorage, "0", "cpu", 12), 0, (3, 4), (4, 1), ...)
std::optional<Described> described(const Value& root) {
  if (!is_made_by(&root, "torch._utils _rebuild_tensor_v2")) return {};
  const auto* storage = item(root.arguments, 0, Kind::kObject);
  if (!is_made_by(storage, Pickle::kPersistent)) return {};
  const auto *type = item(storage->arguments, 1, Kind::kName), *key = item(storage->arguments, 2, Kind::kText);
  const auto *count = item(storage->arguments, 4, Kind::kNumber), *offset = item(root.arguments, 1, Kind::kNumber);
  const auto sizes = numbers(item(root.arguments, 2, Kind::kSequence));
  const auto strides = numbers(item(root.arguments, 3, Kind::kSequence));
  if (!type || !key || !count || !offset || !sizes || !strides || sizes->size() != strides->size()) return {};
  return Described{type->text, key->text, count->number, offset->number, *sizes, *strides};
}

/// Whether every element is one of the record's.
bool is_inside(const Described& tensor) {
  int64_t last = tensor.offset;
  for (size_t d = 0; d < tensor.sizes.size(); ++d) {
    int64_t step = 0;
    if (tensor.sizes[d] == 0) return true;
    if (__builtin_mul_overflow(tensor.sizes[d] - 1, tensor.strides[d], &step)) return false;
    if (__builtin_add_overflow(last, step, &last)) return false;
  }
  return last >= 0 && last < tensor.count;
}

class Archive {
 public:
  Archive(const RandomAccessFile& file, int64_t offset, int64_t length, const std::string& name)
      : where_(fmt::format("{}: {} (bytes from {} on)", file.path(), name, offset)),
        length_(length),
        reader_(std::make_shared<Part>(file, offset, length)) {}

  at::Tensor tensor(const StoredType& type, const std::vector<int64_t>& sizes) {
    const auto pickle = record("data.pkl", kLongestPickle);
    const auto found = described(
        Pickle({static_cast<const char*>(pickle.const_data_ptr()), static_cast<size_t>(pickle.numel())}, where_)
            .root());
    if (!found || found->storage != type.storage || found->sizes != sizes)
      refuse("holds no tensor of the type and the sizes that .metadata gives it");
    if (reader_.hasRecord("byteorder") && text("byteorder") != "little") refuse("was saved on a big-endian machine");
    const auto bytes = record("data/" + found->key, length_);
    const auto width = static_cast<int64_t>(c10::elementSize(type.dtype));
    if (bytes.numel() % width != 0 || bytes.numel() / width != found->count || !is_inside(*found))
      refuse("says of its numbers what is not so");
    return bytes.view(type.dtype).as_strided(found->sizes, found->strides, found->offset);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail<FileError>("{}: {}. It may be damaged.", where_, what);
  }

  std::string text(const std::string& name) {
    const auto bytes = record(name, 64);
    return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(bytes.numel())};
  }

  at::Tensor record(const std::string& name, int64_t most) {
    if (!reader_.hasRecord(name)) refuse("has no " + name);
    const auto size = reader_.getRecordSize(name);
    if (size > static_cast<size_t>(most)) refuse(name + " is too large");
    auto bytes = at::empty({static_cast<int64_t>(size)}, at::kChar);
    reader_.getRecord(name, bytes.data_ptr(), size);
    return bytes;
  }

  std::string where_;
  int64_t length_;
  caffe2::serialize::PyTorchStreamReader reader_;
};

}  // namespace

at::Tensor read_stored_tensor(const RandomAccessFile& file, int64_t offset, int64_t length, const std::string& name,
                              const std::string& dtype, const std::vector<int64_t>& sizes) {
  try {
    return Archive(file, offset, length, name).tensor(kTypes.at(dtype), sizes);
  } catch (const c10::Error& error) {
    fail<FileError>("{}: {} (bytes from {} on) cannot be read: {}", file.path(), name, offset,
                    error.what_without_backtrace());
  } catch (const std::logic_error& error) {  // of the archive's version, which is no number
    fail<FileError>("{}: {} (bytes from {} on) cannot be read: {}", file.path(), name, offset, error.what());
  }
}

}  // namespace lockstep::trainer
