#include "trainer/weights/hugging_face/safetensors_folder.h"

#include <ATen/Functions.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/files/random_access_file.h"
#include "trainer/checkpoint/strict_json.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;

constexpr auto kOneFile = "model.safetensors", kIndex = "model.safetensors.index.json";
constexpr int64_t kMostIndexBytes = 1 << 28;

c10::ScalarType dtype_of(const std::string& path, const std::string& name, const std::string& dtype) {
  if (dtype == "F32") return c10::kFloat;
  if (dtype == "BF16") return c10::kBFloat16;
  if (dtype == "F16") return c10::kHalf;
  fail<BadInput>("{}: {} is {}; weights of F32, F16 and BF16 can be read, quantized ones cannot.", path, name, dtype);
}

/// The file of each tensor.
std::map<std::string, std::string> read_index(const std::string& path) {
  const auto json = parse_strict_json(RandomAccessFile(path).text(kMostIndexBytes), path);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object()) fail<FileError>("{}: has no weight_map of names.", path);
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      fail<FileError>("{}: {} must be in a file of this folder.", path, name);
    files[name] = file.get<std::string>();
  }
  return files;
}

}  // namespace

bool is_safetensors_folder(const std::string& folder) {
  return fs::exists(fs::path(folder) / kOneFile) || fs::exists(fs::path(folder) / kIndex);
}

SafetensorsFolder::SafetensorsFolder(const std::string& folder) : folder_(folder) {
  if (!is_safetensors_folder(folder)) fail<BadInput>("{}: has neither {} nor {}.", folder, kOneFile, kIndex);
  const auto index_path = (fs::path(folder) / kIndex).string();
  if (!fs::exists(index_path)) {
    open(kOneFile);
    return;
  }
  const auto index = read_index(index_path);
  std::set<std::string> files;
  for (const auto& [name, file] : index) files.insert(file);
  for (const auto& file : files) open(file);
  require_indexed(index_path, index);
}

void SafetensorsFolder::open(const std::string& file) {
  const auto& opened = files_.try_emplace(file, (fs::path(folder_) / file).string()).first->second;
  for (const auto& [name, entry] : opened.entries())
    if (!places_.emplace(name, file).second)
      fail<FileError>("{}: {} is in {} and in {}.", folder_, name, places_.at(name), file);
}

/// The files and the index must say the same.
void SafetensorsFolder::require_indexed(const std::string& path,
                                        const std::map<std::string, std::string>& index) const {
  for (const auto& [name, file] : index)
    if (const auto found = places_.find(name); found == places_.end() || found->second != file)
      fail<FileError>("{}: {} is not in {}.", path, name, file);
  for (const auto& [name, file] : places_)
    if (!index.contains(name)) fail<FileError>("{}: does not name {}, which is in {}.", path, name, file);
}

std::vector<std::string> SafetensorsFolder::names() const {
  std::vector<std::string> all;
  for (const auto& [name, file] : places_) all.push_back(name);
  return all;
}

const SafetensorsFile::Entry& SafetensorsFolder::entry(const std::string& name) const {
  return files_.at(places_.at(name)).entries().at(name);
}

at::Tensor SafetensorsFolder::rows(const std::string& name, int64_t first, int64_t count) const {
  const auto& file = files_.at(places_.at(name));
  auto part = entry(name);
  LOCKSTEP_CHECK(!part.shape.empty() && first >= 0 && first + count <= part.shape[0], "rows of {}", name);
  const auto row_bytes = part.shape[0] > 0 ? part.size / part.shape[0] : 0;
  part.begin += first * row_bytes, part.size = count * row_bytes, part.shape[0] = count;
  auto rows = at::empty(part.shape, dtype_of(file.path(), name, part.dtype));
  file.read(part, {static_cast<std::byte*>(rows.mutable_data_ptr()), static_cast<size_t>(part.size)});
  return rows.to(c10::kFloat);
}

}  // namespace lockstep::trainer
