#include "trainer/checkpoint/checkpoint_file.h"

#include <filesystem>
#include <set>

#include "core/digest/digest.h"
#include "core/error.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/copy_overlap.h"

namespace lockstep::trainer {
namespace {

/// Several million chunks.
constexpr int64_t kMostIndexBytes = 1 << 30;

std::string read_index_text(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    fail<BadInput>("{}: no such checkpoint folder{}.", folder,
                   error && error != std::errc::no_such_file_or_directory ? ": " + error.message() : "");
  const auto path = fmt::format("{}/{}", folder, kIndexFile);
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, error)))
    fail<FileError>("{}: incomplete checkpoint: it has no {}.", folder, kIndexFile);
  return RandomAccessFile(path).text(kMostIndexBytes);
}

CheckpointIndex read_index(const std::string& folder) {
  auto index = parse_index(read_index_text(folder), fmt::format("{}/{}", folder, kIndexFile));
  require_own_name(folder, index.metadata.step);
  return index;
}

bool uses(const TensorRecord& tensor, const std::set<std::string>& files) {
  for (const auto& chunk : tensor.chunks)
    if (files.contains(chunk.file)) return true;
  return false;
}

std::set<std::string> file_names(const CheckpointIndex& index) {
  std::set<std::string> files;
  for (const auto& [name, tensor] : index.tensors)
    for (const auto& chunk : tensor.chunks) files.insert(chunk.file);
  return files;
}

}  // namespace

Checkpoint::Checkpoint(const std::string& folder) : folder_(folder), index_(read_index(folder)) {
  std::set<std::string> broken;
  std::string first_error;
  for (const auto& file : file_names(index_)) {
    try {
      files_.emplace(file, SafetensorsFile(fmt::format("{}/{}", folder, file)));
    } catch (const FileError& error) {
      if (broken.empty()) first_error = error.what();
      broken.insert(file);
    }
  }
  for (const auto& [name, tensor] : index_.tensors)
    if (!uses(tensor, broken))
      for (const auto& chunk : tensor.chunks) check_chunk(name, tensor, chunk);
  if (!broken.empty()) fail_broken(first_error, broken);
}

void Checkpoint::fail_broken(const std::string& first_error, const std::set<std::string>& broken) const {
  size_t readable = 0;
  for (const auto& [name, tensor] : index_.tensors) readable += uses(tensor, broken) ? 0 : 1;
  fail<FileError>("{} {} of {} files are damaged; {} of {} tensors of step {} can be read.", first_error, broken.size(),
                  broken.size() + files_.size(), readable, index_.tensors.size(), index_.metadata.step);
}

void Checkpoint::check_chunk(const std::string& name, const TensorRecord& tensor, const ChunkRecord& chunk) const {
  const auto& entries = files_.at(chunk.file).entries();
  const auto found = entries.find(chunk.tensor);
  if (found == entries.end() || found->second.dtype != tensor.dtype || found->second.shape != chunk.box.size)
    fail<FileError>("{}/{}: damaged: it does not hold {} as the index describes it.", folder_, chunk.file, name);
}

const TensorRecord& Checkpoint::tensor(const std::string& name) const {
  const auto found = index_.tensors.find(name);
  if (found == index_.tensors.end()) fail<FileError>("{}: holds no tensor {}.", folder_, name);
  return found->second;
}

CheckpointMetadata saved_metadata(const std::string& folder) { return read_index(folder).metadata; }

std::optional<RunOrigin> saved_origin(const std::string& folder) try {
  return saved_metadata(folder).origin;
} catch (const Error&) {
  return std::nullopt;
}

std::vector<std::byte> Checkpoint::read_chunk(const std::string& name, const ChunkRecord& chunk) const {
  const auto& file = files_.at(chunk.file);
  const auto& entry = file.entries().at(chunk.tensor);
  std::vector<std::byte> bytes(static_cast<size_t>(entry.size));
  file.read(entry, bytes);
  if (digest(bytes).text() != chunk.digest)
    fail<FileError>("{}: damaged: {} of {} does not match its digest.", file.path(), chunk.tensor, name);
  return bytes;
}

std::vector<std::byte> Checkpoint::read(const std::string& name, const Box& box) const {
  const auto& record = tensor(name);
  LOCKSTEP_CHECK(box.inside(record.shape), "{}", name);
  const auto element = element_size(record.dtype);
  std::vector<std::byte> out(static_cast<size_t>(box.elements() * element));
  for (const auto& chunk : record.chunks)
    if (chunk.box.overlap(box).elements() > 0) copy_overlap(chunk.box, read_chunk(name, chunk), box, out, element);
  return out;
}

std::vector<std::byte> Checkpoint::read(const std::string& name) const {
  return read(name, Box::whole(tensor(name).shape));
}

std::vector<std::string> Checkpoint::damage() const {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : index_.tensors)
    for (const auto& chunk : tensor.chunks) try {
        read_chunk(name, chunk);
      } catch (const FileError& error) {
        lines.emplace_back(error.what());
      }
  return lines;
}

}  // namespace lockstep::trainer
