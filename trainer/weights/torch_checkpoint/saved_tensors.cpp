#include "trainer/weights/torch_checkpoint/saved_tensors.h"

#include <algorithm>

#include "core/error.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/weights/torch_checkpoint/pickle.h"

namespace lockstep::trainer {
namespace {

using Value = Pickle::Value;
using Kind = Pickle::Kind;

/// The reader of one file: of each value it takes what PyTorch's classes have there, or fails.
class Metadata {
 public:
  Metadata(std::string_view bytes, const std::string& path) : path_(path), pickle_(bytes, path) {}

  std::map<std::string, SavedTensor> tensors() {
    const auto* root = object(&pickle_.root(), "torch.distributed.checkpoint.metadata Metadata", "the file");
    const auto* described = dict(attribute(root, "state_dict_metadata"), "state_dict_metadata");
    for (size_t i = 0; i + 1 < described->items.size(); i += 2)
      describe(text(described->items[i], "a tensor's name"), described->items[i + 1]);
    const auto* stored = dict(attribute(root, "storage_data"), "storage_data");
    for (size_t i = 0; i + 1 < stored->items.size(); i += 2) store(stored->items[i], stored->items[i + 1]);
    for (const auto& [name, tensor] : tensors_) require_whole(name, tensor);
    return std::move(tensors_);
  }

 private:
  [[noreturn]] void fail_in(const std::string& what) const {
    fail<FileError>("{}: {} is not what PyTorch 2.11 saves. It may be damaged, or of another version.", path_, what);
  }

  const Value* object(const Value* value, std::string_view made_by, const std::string& what) const {
    if (!value || value->kind != Kind::kObject || value->made_by->text != made_by) fail_in(what);
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
    std::vector<int64_t> sizes;
    for (const auto* entry : sequence(arguments.empty() ? nullptr : arguments[0], what))
      sizes.push_back(number(entry, what));
    return sizes;
  }

  void describe(const std::string& name, const Value* value) {
    if (!value || value->kind != Kind::kObject) fail_in(name);
    if (value->made_by->text != "torch.distributed.checkpoint.metadata TensorStorageMetadata") return;
    auto& tensor = tensors_[name];
    tensor.sizes = size(attribute(value, "size"), name);
    const auto* properties = attribute(value, "properties");
    if (!properties || !properties->state) fail_in(name);
    const auto& fields = sequence(properties->state, name);
    if (fields.empty() || fields[0]->kind != Kind::kName || !fields[0]->text.starts_with("torch ")) fail_in(name);
    tensor.dtype = fields[0]->text.substr(6);
    for (const auto* chunk : sequence(attribute(value, "chunks"), name))
      tensor.parts.push_back({.box = {size(attribute(chunk, "offsets"), name), size(attribute(chunk, "sizes"), name)}});
  }

  void store(const Value* index, const Value* place) {
    object(index, "torch.distributed.checkpoint.metadata MetadataIndex", "storage_data");
    const auto& name = text(attribute(index, "fqn"), "storage_data");
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return;
    object(place, "torch.distributed.checkpoint.filesystem _StorageInfo", name);
    const auto offset = size(attribute(index, "offset"), name);
    for (auto& part : found->second.parts)
      if (part.box.offset == offset) return put(name, place, part);
    fail_in(name);
  }

  void put(const std::string& name, const Value* place, SavedPart& part) const {
    part.file = text(attribute(place, "relative_path"), name);
    part.offset = number(attribute(place, "offset"), name);
    part.length = number(attribute(place, "length"), name);
    if (part.file.empty() || part.file.find('/') != std::string::npos || part.file == "..")
      fail<FileError>("{}: {} lies in \"{}\"; it must be in a file of this folder.", path_, name, part.file);
    const auto* transforms = attribute(place, "transform_descriptors");
    if (transforms && transforms->kind != Kind::kNone && !transforms->items.empty())
      fail<FileError>("{}: {} is compressed. Save it without extensions.", path_, name);
  }

  /// As many elements as the tensor has, in parts that have none in common.
  void require_whole(const std::string& name, const SavedTensor& tensor) const {
    const int64_t all = element_count(tensor.sizes);
    int64_t elements = 0;
    for (const auto& part : tensor.parts) {
      if (part.file.empty()) fail<FileError>("{}: no file is said to hold {}.", path_, name);
      if (all < 0 || !part.box.inside(tensor.sizes)) fail_in(name);
      for (const auto* other = &tensor.parts[0]; other != &part; ++other)
        if (part.box.overlap(other->box).elements() > 0) fail_in(name);
      elements += part.box.elements();
    }
    if (elements != all) fail_in(name);
  }

  const std::string& path_;
  Pickle pickle_;
  std::map<std::string, SavedTensor> tensors_;
};

}  // namespace

std::map<std::string, SavedTensor> saved_tensors(std::string_view bytes, const std::string& path) {
  return Metadata(bytes, path).tensors();
}

}  // namespace lockstep::trainer
