#pragma once
#include <ATen/Functions.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/box.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::testing {

/// Writes what Python's pickle module (protocol 4) does of plain structures. Each call appends one value.
class PickleWriter {
 public:
  std::string finished() const { return std::string("\x80\x04", 2) + bytes_ + "."; }

  PickleWriter& raw(std::string_view bytes) { return bytes_ += bytes, *this; }
  PickleWriter& text(const std::string& text) { return raw("X").little(text.size(), 4).raw(text); }
  PickleWriter& number(int64_t value) { return raw("\x8a\x08").little(static_cast<uint64_t>(value), 8); }
  PickleWriter& name(const std::string& module, const std::string& own) { return text(module).text(own).raw("\x93"); }
  PickleWriter& size(const std::vector<int64_t>& sizes) {
    name("torch", "Size").raw("(");
    for (const auto size : sizes) number(size);
    return raw("t\x85R");
  }

 private:
  PickleWriter& little(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string bytes_;
};

/// A folder as torch.distributed.checkpoint saves it, with all in one file. Whatever is changed before write() is what
/// .metadata says.
class TorchFolder {
 public:
  struct Part {
    Box box;
    std::string file = "__0_0.distcp";
    int64_t offset = 0, length = 0;
    bool is_compressed = false;
  };
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> sizes;
    std::vector<Part> parts;
  };

  /// A tensor whole, or cut along its first dimension into `parts`, the first ones longer.
  void add(const std::string& name, const at::Tensor& value, int64_t parts = 1) {
    auto& tensor = tensors[name];
    tensor = {name_of(value.scalar_type()), value.sizes().vec(), {}};
    for (const auto& piece : value.dim() == 0 ? std::vector{value} : value.tensor_split(parts)) {
      auto box = Box::whole(piece.sizes().vec());
      for (const auto& before : tensor.parts) box.offset[0] += before.box.size[0];
      put(tensor, box, piece);
    }
  }
  void add(const std::string& name, const at::Tensor& value, const std::vector<Box>& boxes) {
    add(name, value, int64_t{1});
    tensors[name].parts.clear();
    for (const auto& box : boxes) {
      auto piece = value;
      for (size_t d = 0; d < box.size.size(); ++d)
        piece = piece.narrow(static_cast<int64_t>(d), box.offset[d], box.size[d]);
      put(tensors[name], box, piece);
    }
  }

  std::string metadata() const {
    PickleWriter out;
    begin(out, kMetadata, "Metadata").text("state_dict_metadata").raw("}(");
    for (const auto& [name, tensor] : tensors) describe(out.text(name), tensor);
    begin(out.text("train_state"), kMetadata, "BytesStorageMetadata").raw("ub");
    out.raw("u").text("planner_data").raw("}").text("storage_data").raw("}(");
    for (const auto& [name, tensor] : tensors)
      for (const auto& part : tensor.parts) store(out, name, part);
    return out.raw("uub").finished();
  }

  void write() const {
    std::ofstream(path() + "/.metadata", std::ios::binary) << metadata();
    std::ofstream(path() + "/__0_0.distcp", std::ios::binary)
        .write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
  }
  const std::string& path() const { return folder_.path(); }

  std::map<std::string, Tensor> tensors;

 private:
  static std::string name_of(c10::ScalarType dtype) {
    static const std::map<c10::ScalarType, std::string> names{
        {at::kFloat, "float32"}, {at::kHalf, "float16"}, {at::kBFloat16, "bfloat16"}, {at::kLong, "int64"}};
    return names.at(dtype);
  }
  static constexpr auto kMetadata = "torch.distributed.checkpoint.metadata";

  void put(Tensor& tensor, const Box& box, const at::Tensor& piece) {
    const auto saved = torch::jit::pickle_save(piece.contiguous().clone());
    tensor.parts.push_back(
        {.box = box, .offset = static_cast<int64_t>(bytes_.size()), .length = static_cast<int64_t>(saved.size())});
    bytes_.insert(bytes_.end(), saved.begin(), saved.end());
  }

  static PickleWriter& begin(PickleWriter& out, const std::string& module, const std::string& name) {
    return out.name(module, name).raw(")\x81}(");
  }
  static void describe(PickleWriter& out, const Tensor& tensor) {
    begin(out, kMetadata, "TensorStorageMetadata").text("properties");
    out.name(kMetadata, "TensorProperties").raw(")\x81(").name("torch", tensor.dtype).raw("\x89\x89tb");
    out.text("size").size(tensor.sizes).text("chunks").raw("](");
    for (const auto& part : tensor.parts)
      begin(out, kMetadata, "ChunkStorageMetadata")
          .text("offsets")
          .size(part.box.offset)
          .text("sizes")
          .size(part.box.size)
          .raw("ub");
    out.raw("eub");
  }
  static void store(PickleWriter& out, const std::string& name, const Part& part) {
    begin(out, kMetadata, "MetadataIndex").text("fqn").text(name).text("offset").size(part.box.offset).raw("ub");
    begin(out, "torch.distributed.checkpoint.filesystem", "_StorageInfo").text("relative_path").text(part.file);
    out.text("offset").number(part.offset).text("length").number(part.length);
    if (part.is_compressed) out.text("transform_descriptors").raw("]").text("zstd").raw("a");
    out.raw("ub");
  }

  TemporaryFolder folder_;
  std::vector<char> bytes_;
};

}  // namespace lockstep::testing
