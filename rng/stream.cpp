#include "rng/stream.h"

#include <xxhash.h>

#include "core/error.h"

namespace lockstep::rng {
namespace {

void append_little_endian(std::string& bytes, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>((value >> shift) & 0xffu));
}

}  // namespace

uint64_t stream_of(const StreamName& name) {
  std::string bytes;
  bytes.reserve(16 + name.module_path.size());
  append_little_endian(bytes, name.step);
  append_little_endian(bytes, name.occurrence);
  bytes += name.module_path;
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t StreamRegistry::open(const StreamName& name) {
  const uint64_t stream = hash_(name);
  const Entry entry{name.step, name.occurrence, intern(name.module_path)};
  const auto [known, added] = entries_.try_emplace(stream, entry);
  if (!added) {
    if (known->second != entry) report(known->second, name);
    return stream;
  }
  order_.push_back(stream);
  if (order_.size() > capacity_) {
    entries_.erase(order_.front());
    order_.pop_front();
  }
  return stream;
}

uint32_t StreamRegistry::intern(std::string_view path) {
  const auto [found, added] = path_index_.try_emplace(std::string(path), static_cast<uint32_t>(paths_.size()));
  if (added) paths_.emplace_back(path);
  return found->second;
}

void StreamRegistry::report(const Entry& known, const StreamName& name) const {
  fail<BadInput>(
      "random streams collide: step {} '{}' draw {} and step {} '{}' draw {} have the same hash {:016x}; rename one of "
      "the modules",
      known.step, paths_[known.path], known.occurrence, name.step, name.module_path, name.occurrence, hash_(name));
}

}  // namespace lockstep::rng
