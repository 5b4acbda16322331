#include "trainer/weights/torch_checkpoint/saved_tensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/weights/torch_checkpoint/pickle.h"

namespace lockstep::trainer {
namespace {

using Value = Pickle::Value;
using Kind = Pickle::Kind;

constexpr size_t kMostDims = 8, kMostParts = 65536;  ///< of a tensor

/// Whether two boxes of the same tensor have an element in common.
bool overlap(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.size.size(); ++d)
    if (std::max(a.offset[d], b.offset[d]) >= std::min(a.offset[d] + a.size[d], b.offset[d] + b.size[d])) return false;
  return true;
}

std::string text_of(const std::vector<int64_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }

/// The reader of one file: of each value it takes what PyTorch's classes have there, or fails.
class Metadata {
 public:
  using Wanted = std::function<bool(const std::string&)>;

  Metadata(std::string_view bytes, const std::string& path, const Wanted& wanted)
      : path_(path), wanted_(wanted), parts_left_(bytes.size() / 8), pickle_(bytes, path) {}

  std::map<std::string, SavedTensor> tensors() {
    const auto* root = object(&pickle_.root(), "torch.distributed.checkpoint.metadata Metadata", "the file");
    const auto* described = dict(attribute(root, "state_dict_metadata"), "state_dict_metadata");
    for (size_t i = 0; i + 1 < described->items.size(); i += 2)
      describe(text(described->items[i], "a tensor's name"), described->items[i + 1]);
    const auto* stored = dict(attribute(root, "storage_data"), "storage_data");
    for (size_t i = 0; i + 1 < stored->items.size(); i += 2) store(stored->items[i], stored->items[i + 1]);
    for (const auto& [name, tensor] : tensors_)
      if (wanted_(name)) require_whole(name, tensor);
    return std::move(tensors_);
  }

 private:
  [[noreturn]] void fail_in(const std::string& what) const {
    fail<FileError>("{}: {} is not described as PyTorch 2.11 does. It may be damaged, or of another version.", path_,
                    what);
  }
  template <class... Arguments>
  [[noreturn]] void fail_of(const std::string& name, fmt::format_string<Arguments...> what,
                            Arguments&&... arguments) const {
    fail<FileError>("{}: {} {}. Its checkpoint is not whole.", path_, name,
                    fmt::format(what, std::forward<Arguments>(arguments)...));
  }

  const Value* object(const Value* value, std::string_view made_by, const std::string& what) const {
    if (!is_made_by(value, made_by)) fail_in(what);
    return value;
  }
  static const Value* attribute(const Value* object, std::string_view name) { return entry_of(object->state, name); }
  const Value* dict(const Value* value, const std::string& what) const {
    if (!value || value->kind != Kind::kDict) fail_in(what);
    return value;
  }
  const std::string& text(const Value* value, const std::string& what) const {
    if (!value || value->kind != Kind::kText) fail_in(what);
    return value->text;
  }
  int64_t number(const Value* value, const std::string& what) const {
    if (!value || value->kind != Kind::kNumber || value->number < 0) fail_in(what);
    return value->number;
  }
  const std::vector<const Value*>& sequence(const Value* value, const std::string& what) const {
    if (!value || value->kind != Kind::kSequence) fail_in(what);
    return value->items;
  }

  /// torch.Size((3, 4))
  std::vector<int64_t> size(const Value* value, const std::string& what) const {
    const auto& arguments = object(value, "torch Size", what)->arguments->items;
    const auto& entries = sequence(arguments.empty() ? nullptr : arguments[0], what);
    if (entries.size() > kMostDims) fail_in(what);
    std::vector<int64_t> sizes;
    for (const auto* entry : entries) sizes.push_back(number(entry, what));
    return sizes;
  }

  void describe(const std::string& name, const Value* value) {
    if (!value || value->kind != Kind::kObject) fail_in(name);
    if (!is_made_by(value, "torch.distributed.checkpoint.metadata TensorStorageMetadata")) return;
    const auto [found, is_new] = tensors_.try_emplace(name);
    if (!is_new) fail_in(name);
    auto& tensor = found->second;
    tensor.sizes = size(attribute(value, "size"), name);
    tensor.dtype = dtype(attribute(value, "properties"), name);
    if (wanted_(name)) tensor.parts = parts(sequence(attribute(value, "chunks"), name), name);
  }

  std::string dtype(const Value* properties, const std::string& name) const {
    if (!properties || !properties->state) fail_in(name);
    const auto& fields = sequence(properties->state, name);
    if (fields.empty() || fields[0]->kind != Kind::kName || !fields[0]->text.starts_with("torch ")) fail_in(name);
    return fields[0]->text.substr(6);
  }

  /// By their offsets. There are no more of them in all than the file has room to describe.
  std::vector<SavedPart> parts(const std::vector<const Value*>& chunks, const std::string& name) {
    if (chunks.size() > kMostParts || chunks.size() > parts_left_) fail_in(name);
    parts_left_ -= chunks.size();
    std::vector<SavedPart> all;
    for (const auto* chunk : chunks)
      all.push_back({.box = {size(attribute(chunk, "offsets"), name), size(attribute(chunk, "sizes"), name)}});
    std::ranges::sort(all, {}, [](const SavedPart& part) { return part.box.offset; });
    return all;
  }

  void store(const Value* index, const Value* place) {
    object(index, "torch.distributed.checkpoint.metadata MetadataIndex", "storage_data");
    const auto& name = text(attribute(index, "fqn"), "storage_data");
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || !wanted_(name)) return;
    object(place, "torch.distributed.checkpoint.filesystem _StorageInfo", name);
    const auto offset = size(attribute(index, "offset"), name);
    const auto by_offset = [](const SavedPart& part) { return part.box.offset; };
    const auto part = std::ranges::lower_bound(found->second.parts, offset, {}, by_offset);
    if (part == found->second.parts.end() || part->box.offset != offset)
      fail_of(name, "is stored from {} on, where no part of it begins", text_of(offset));
    put(name, place, *part);
  }

  void put(const std::string& name, const Value* place, SavedPart& part) const {
    part.file = text(attribute(place, "relative_path"), name);
    part.offset = number(attribute(place, "offset"), name);
    part.length = number(attribute(place, "length"), name);
    if (!part.file.ends_with(".distcp") || part.file.find('/') != std::string::npos ||
        part.file.find('\0') != std::string::npos)
      fail<FileError>("{}: {} lies in \"{}\"; it must be in a .distcp file of this folder.", path_, name, part.file);
    const auto* transforms = attribute(place, "transform_descriptors");
    if (transforms && transforms->kind != Kind::kNone && !transforms->items.empty())
      fail<FileError>("{}: {} is compressed. Save it without extensions.", path_, name);
  }

  /// As many elements as the tensor has, in parts that have none in common.
  void require_whole(const std::string& name, const SavedTensor& tensor) const {
    const int64_t all = element_count(tensor.sizes);
    if (all < 0) fail_in(name);
    for (const auto& part : tensor.parts) require_placed(name, tensor, part);
    int64_t elements = 0;
    for (size_t i = 0; i < tensor.parts.size(); ++i) {
      require_alone(name, tensor.parts, i);
      elements += tensor.parts[i].box.elements();
    }
    if (elements != all) fail_of(name, "has {} elements, its parts have {}", all, elements);
  }

  void require_placed(const std::string& name, const SavedTensor& tensor, const SavedPart& part) const {
    if (!part.box.inside(tensor.sizes))
      fail_of(name, "has a part from {} on of {}, outside its sizes {}", text_of(part.box.offset),
              text_of(part.box.size), text_of(tensor.sizes));
    if (part.file.empty())
      fail_of(name, "has a part from {} on that no file is said to hold", text_of(part.box.offset));
  }

  /// Part i overlaps none of those behind it; where one begins behind its last row, all others do.
  void require_alone(const std::string& name, const std::vector<SavedPart>& parts, size_t i) const {
    const auto& box = parts[i].box;
    for (size_t j = i + 1; j < parts.size(); ++j) {
      const auto& other = parts[j].box;
      if (!box.offset.empty() && other.offset[0] >= box.offset[0] + box.size[0]) return;
      if (overlap(box, other))
        fail_of(name, "has parts from {} and from {} on that overlap", text_of(box.offset), text_of(other.offset));
    }
  }

  const std::string& path_;
  const Wanted& wanted_;
  size_t parts_left_;
  Pickle pickle_;
  std::map<std::string, SavedTensor> tensors_;
};

}  // namespace

std::map<std::string, SavedTensor> saved_tensors(std::string_view bytes, const std::string& path,
                                                 const std::function<bool(const std::string&)>& wanted) {
  return Metadata(bytes, path, wanted).tensors();
}

}  // namespace lockstep::trainer
