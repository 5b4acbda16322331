#include "core/mesh_text.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr std::string_view kOneDevice = "one device", kAt = " at ", kSpace = " \t\n";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool is_word(std::string_view text) {
  const auto in_word = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), in_word);
}

/// Reads the pairs "name=number" of one part of `mesh`; numbers from `least` to kMaxRanks.
class Pairs {
 public:
  Pairs(std::string_view mesh, std::string_view what, int64_t least) : mesh_(mesh), what_(what), least_(least) {}

  std::vector<MeshAxis> read(std::string_view text) {
    std::vector<MeshAxis> pairs;
    for (const auto part : split(text, ',')) {
      auto pair = read_pair(part);
      for (const auto& earlier : pairs)
        if (earlier.name == pair.name) fail<BadInput>("mesh \"{}\": {} is given twice.", mesh_, pair.name);
      pairs.push_back(std::move(pair));
    }
    return pairs;
  }

 private:
  MeshAxis read_pair(std::string_view part) const {
    const auto equals = part.find('=');
    const auto name = trimmed(part.substr(0, equals));
    if (equals == part.npos || !is_word(name))
      fail<BadInput>("mesh \"{}\": \"{}\" is not of the form axis={}.", mesh_, part, what_);
    return {std::string(name), read_number(trimmed(part.substr(equals + 1)), name)};
  }

  int64_t read_number(std::string_view text, std::string_view name) const {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < least_ || number > kMaxRanks)
      fail<BadInput>("mesh \"{}\": the {} of {} is \"{}\", must be an integer of at least {}.", mesh_, what_, name,
                     text, least_);
    return number;
  }

  std::string_view mesh_, what_;
  int64_t least_;
};

}  // namespace

MeshText parse_mesh_text(std::string_view text) {
  text = trimmed(text);
  const auto at = text.find(kAt);
  const auto whole = trimmed(text.substr(0, at));
  MeshText result;
  if (!whole.empty() && whole != kOneDevice) result.axes = Pairs(text, "size", 1).read(whole);
  rank_count(result.axes);
  if (at == text.npos) return result;
  for (auto& [name, coordinate] : Pairs(text, "coordinate", 0).read(text.substr(at + kAt.size())))
    result.at.emplace_back(std::move(name), coordinate);
  return result;
}

std::vector<MeshAxis> parse_mesh_axes(std::string_view text) {
  auto mesh = parse_mesh_text(text);
  if (!mesh.at.empty())
    fail<BadInput>("mesh \"{}\" is a part of a mesh; a whole mesh is expected here.", trimmed(text));
  return std::move(mesh.axes);
}

std::vector<std::string_view> split_mesh_list(std::string_view text) { return split(text, ';'); }

std::string to_text(const std::vector<MeshAxis>& axes) {
  if (axes.empty()) return std::string(kOneDevice);
  std::string text;
  for (const auto& axis : axes) text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  return text;
}

int64_t rank_count(const std::vector<MeshAxis>& axes) {
  int64_t product = 1;
  for (const auto& axis : axes)
    if (__builtin_mul_overflow(product, axis.size, &product) || product > kMaxRanks)
      fail<BadInput>("mesh \"{}\" has more than {} ranks.", to_text(axes), kMaxRanks);
  return product;
}

}  // namespace lockstep
