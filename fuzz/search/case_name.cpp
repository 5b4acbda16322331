#include "fuzz/search/case_name.h"

#include <fmt/ranges.h>

#include <charconv>

#include "core/error.h"

namespace lockstep::fuzz {
namespace {

template <class Number>
Number number_of(std::string_view text, std::string_view whole, int base) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number, base);
  if (text.empty() || error != std::errc() || last != end)
    fail<BadInput>("{} is not the name of a case; expected CHECK@SEED:SIZE, for example mm/layouts@5eed:100.", whole);
  return number;
}

/// The text before `mark`, which is taken off with it.
std::string_view take_until(std::string_view& text, char mark) {
  const auto end = text.find(mark);
  const auto part = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return part;
}

uint64_t scrambled(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::string to_text(const CaseName& name) {
  const auto text = fmt::format("{}@{:x}:{}", name.check, name.seed, name.size);
  return name.steps.empty() ? text : fmt::format("{}:{}", text, fmt::join(name.steps, "."));
}

CaseName parse_case_name(std::string_view whole) {
  auto rest = whole;
  CaseName name;
  name.check = take_until(rest, '@');
  name.seed = number_of<uint64_t>(take_until(rest, ':'), whole, 16);
  name.size = number_of<int>(take_until(rest, ':'), whole, 10);
  while (!rest.empty()) name.steps.push_back(number_of<size_t>(take_until(rest, '.'), whole, 10));
  return name;
}

CaseName nth_case(const std::string& check, uint64_t seed, int64_t number) {
  uint64_t key = scrambled(seed + 0x9e3779b97f4a7c15u);
  for (const char letter : check) key = scrambled(key ^ static_cast<unsigned char>(letter));
  key = scrambled(key + static_cast<uint64_t>(number) * 0x9e3779b97f4a7c15u);
  // Of the full size every other; the smaller ones have small meshes and shapes together.
  const int size = number % 2 == 0 ? 100 : static_cast<int>(1 + scrambled(key) % 100);
  return {check, key, size};
}

}  // namespace lockstep::fuzz
