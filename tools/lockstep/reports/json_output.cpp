#include "tools/lockstep/reports/json_output.h"

#include <nlohmann/json.hpp>

#include "core/files/atomic_file.h"

namespace lockstep::tool {

void write_json(const Output& output, const nlohmann::ordered_json& result) {
  if (output.json.empty()) return;
  // Text of unknown origin (paths, descriptions) may hold bytes that are not UTF-8.
  const auto text = result.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  write_file_atomically(output.json, text + "\n");
}

}  // namespace lockstep::tool
