#include <algorithm>
#include <filesystem>
#include <set>

#include "core/digest/digest.h"
#include "core/error.h"
#include "core/files/atomic_file.h"
#include "core/files/make_folders.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/checkpoint/checkpoint_names.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;
constexpr size_t kPartBytes = size_t{1} << 30;  // files stay below this, unless one chunk is larger

/// "wq" for a whole tensor, "wq[0:4,8:16]" for a part.
std::string chunk_name(const ChunkToSave& chunk) {
  if (chunk.box == Box::whole(chunk.shape)) return chunk.name;
  std::string ranges;
  for (size_t d = 0; d < chunk.shape.size(); ++d)
    ranges += fmt::format("{}{}:{}", d ? "," : "", chunk.box.offset[d], chunk.box.offset[d] + chunk.box.size[d]);
  return fmt::format("{}[{}]", chunk.name, ranges);
}

/// How many of the leading chunks go into one file.
size_t part_length(std::span<const ChunkToSave> chunks) {
  size_t bytes = 0, count = 0;
  while (count < chunks.size() && (count == 0 || bytes + chunks[count].bytes.size() <= kPartBytes))
    bytes += chunks[count++].bytes.size();
  return count;
}

void write_part(const std::string& folder, const std::string& file, std::span<const ChunkToSave> chunks,
                CheckpointIndex& index) {
  std::vector<TensorBytes> tensors;
  for (const auto& chunk : chunks) {
    LOCKSTEP_CHECK(chunk.box.inside(chunk.shape), "chunk of {}", chunk.name);
    tensors.push_back({chunk_name(chunk), chunk.dtype, chunk.box.size, chunk.bytes});
    auto& record = index.tensors.try_emplace(chunk.name, TensorRecord{chunk.dtype, chunk.shape, {}}).first->second;
    LOCKSTEP_CHECK(record.dtype == chunk.dtype && record.shape == chunk.shape, "chunks of {} disagree", chunk.name);
    record.chunks.push_back({chunk.box, file, tensors.back().name, digest(chunk.bytes).text()});
  }
  write_safetensors(folder + "/" + file, tensors);
}

void join(const CheckpointIndex& part, CheckpointIndex& whole) {
  for (const auto& [name, tensor] : part.tensors) {
    auto& record = whole.tensors.try_emplace(name, TensorRecord{tensor.dtype, tensor.shape, {}}).first->second;
    record.chunks.insert(record.chunks.end(), tensor.chunks.begin(), tensor.chunks.end());
  }
}

/// Files of older or abandoned attempts; a failure to remove them harms nothing.
void remove_unused_files(const std::string& folder, const CheckpointIndex& index) {
  std::set<std::string> used;
  for (const auto& [name, tensor] : index.tensors)
    for (const auto& chunk : tensor.chunks) used.insert(chunk.file);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const auto name = entry.path().filename().string();
    if (is_of_save(name) && !used.contains(name)) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

int64_t next_attempt(const std::string& folder) {
  int64_t next = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const auto attempt = attempt_of(entry.path().filename().string());
    if (attempt) next = std::max(next, *attempt + 1);
  }
  return next;
}

CheckpointIndex write_chunks(const std::string& folder, int64_t attempt, int64_t process,
                             std::span<const ChunkToSave> chunks) {
  make_folders(folder);
  CheckpointIndex index;
  for (size_t part = 0; !chunks.empty(); ++part) {
    const auto count = part_length(chunks);
    write_part(folder, data_file_name(attempt, process, part), chunks.first(count), index);
    chunks = chunks.subspan(count);
  }
  return index;
}

void commit_checkpoint(const std::string& folder, const CheckpointMetadata& metadata,
                       std::span<const CheckpointIndex> written) {
  CheckpointIndex index{metadata, {}};
  for (const auto& part : written) join(part, index);
  const auto text = index_text(index);
  const auto path = fmt::format("{}/{}", folder, kIndexFile);
  parse_index(text, path);  // what cannot be read back must not replace what can
  require_own_name(folder, metadata.step);
  write_file_atomically(path, text);
  remove_unused_files(folder, index);
}

void save_checkpoint(const std::string& folder, const CheckpointMetadata& metadata,
                     std::span<const ChunkToSave> chunks) {
  const auto written = write_chunks(folder, next_attempt(folder), 0, chunks);
  commit_checkpoint(folder, metadata, {&written, 1});
}

}  // namespace lockstep::trainer
