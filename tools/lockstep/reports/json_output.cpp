#include "tools/lockstep/reports/json_output.h"

#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.h"
#include "tools/lockstep/console.h"

namespace lockstep::tool {

void write_json(const Output& output, const nlohmann::ordered_json& result) {
  if (output.json.empty()) return;
  // Text of unknown origin (paths, descriptions) may hold bytes that are not UTF-8.
  const auto text = result.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  write_file_atomically(output.json, text + "\n");
}

void update_json(const Output& output, const nlohmann::ordered_json& so_far) {
  if (!can_be_replaced(output.json)) return;
  try {
    write_json(output, so_far);
  } catch (const std::exception& error) {
    print_err("lockstep: {}\n", error.what());
  }
}

bool can_be_replaced(const std::string& path) {
  std::error_code ignored;
  return !std::filesystem::exists(path, ignored) || std::filesystem::is_regular_file(path, ignored);
}

}  // namespace lockstep::tool
