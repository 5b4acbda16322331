#include "core/files/proc_value.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace lockstep {

std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (!line.starts_with(key) || colon == line.npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == line.npos ? "" : line.substr(begin);
  }
  return {};
}

std::string processor_name() {
  const auto value = [](const char* key) { return proc_value("/proc/cpuinfo", key); };
  const auto vendor = value("vendor_id");
  if (vendor.empty()) return "unknown";
  return fmt::format("{} {}/{}/{}, {}", vendor, value("cpu family"), value("model\t"), value("stepping"),
                     value("model name"));
}

int64_t memory_bytes() {
  const int64_t machine = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  int64_t limit = 0;
  return std::ifstream("/sys/fs/cgroup/memory.max") >> limit && limit > 0 ? std::min(machine, limit) : machine;
}

}  // namespace lockstep
