#include "trainer/data/data_file.h"

#include <vector>

#include "core/digest/digest.h"
#include "core/error.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kBlock = 1 << 20, kBlocks = 64;

/// Where the blocks begin, ascending.
std::vector<int64_t> block_starts(int64_t bytes) {
  std::vector<int64_t> starts;
  if (bytes <= kBlocks * kBlock) {
    for (int64_t start = 0; start < bytes; start += kBlock) starts.push_back(start);
    return starts;
  }
  for (int64_t k = 0; k < kBlocks; ++k) starts.push_back((bytes - kBlock) / (kBlocks - 1) * k);
  starts.back() = bytes - kBlock;
  return starts;
}

}  // namespace

RandomAccessFile open_dataset(const std::string& path) {
  try {
    return RandomAccessFile(path);
  } catch (const FileError& error) {
    fail<BadInput>("dataset {}", error.what());
  }
}

std::string data_digest(const std::string& path) {
  const auto file = open_dataset(path);
  Digester digester;
  digester.update(std::to_string(file.size()));
  std::vector<std::byte> block;
  for (const auto start : block_starts(file.size())) {
    block.resize(static_cast<size_t>(std::min(kBlock, file.size() - start)));
    file.read(start, block);
    digester.update(block);
  }
  return digester.result().text();
}

}  // namespace lockstep::trainer
