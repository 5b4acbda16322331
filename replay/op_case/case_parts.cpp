#include "replay/op_case/case_parts.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace lockstep::replay {

// A line of JSON, then the bytes.

std::string text_of_tensors(const OpCase& part) {
  auto head = nlohmann::json::array();
  size_t bytes = 0;
  for (const auto& tensor : part.tensors) {
    head.push_back({tensor.name, tensor.dtype, tensor.sizes, tensor.bytes.size()});
    bytes += tensor.bytes.size();
  }
  auto text = head.dump() + "\n";
  text.reserve(text.size() + bytes);
  for (const auto& tensor : part.tensors)
    text.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return text;
}

void add_tensors(OpCase& one, std::string_view text) {
  const auto end = text.find('\n');
  LOCKSTEP_CHECK(end != text.npos);
  const auto head = nlohmann::json::parse(text.substr(0, end));
  text.remove_prefix(end + 1);
  for (const auto& entry : head) {
    RecordedTensor tensor;
    tensor.name = entry.at(0).get<std::string>();
    tensor.dtype = entry.at(1).get<decltype(tensor.dtype)>();
    tensor.sizes = entry.at(2).get<std::vector<int64_t>>();
    const auto bytes = entry.at(3).get<size_t>();
    LOCKSTEP_CHECK(bytes <= text.size());
    tensor.bytes.resize(bytes);
    if (bytes > 0) std::memcpy(tensor.bytes.data(), text.data(), bytes);
    text.remove_prefix(bytes);
    const auto is_same = [&](const auto& other) { return other.name == tensor.name; };
    if (std::none_of(one.tensors.begin(), one.tensors.end(), is_same)) one.tensors.push_back(std::move(tensor));
  }
}

}  // namespace lockstep::replay
