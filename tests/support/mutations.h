#pragma once
#include <algorithm>
#include <random>
#include <string>
#include <string_view>

namespace lockstep::testing {

/// Makes wrong texts out of right ones. Equal seeds give equal texts.
class Mutations {
 public:
  explicit Mutations(uint64_t seed) : engine_(seed) {}

  /// From one to four changes.
  std::string changed(std::string text) {
    for (auto changes = below(4) + 1; changes > 0; --changes) change(text);
    return text;
  }

  /// One of the numbers that computations go wrong with.
  std::string_view number() {
    static constexpr std::string_view kNumbers[] = {"0",
                                                    "-1",
                                                    "1",
                                                    "9223372036854775807",
                                                    "9223372036854775808",
                                                    "-9223372036854775808",
                                                    "4611686018427387904",
                                                    "1e39",
                                                    "1e-320",
                                                    "1e308",
                                                    "1e999",
                                                    "nan",
                                                    "inf",
                                                    "-inf",
                                                    "0.5",
                                                    "1073741824",
                                                    "1073741825",
                                                    "65536",
                                                    "65537"};
    return kNumbers[below(std::size(kNumbers))];
  }

  size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(engine_); }

 private:
  void change(std::string& text) {
    const auto at = below(text.size() + 1), length = below(std::min<size_t>(text.size() - at, 40) + 1);
    switch (below(6)) {
      case 0:
        return text.erase(at, length), void();
      case 1:
        return text.insert(at, text.substr(below(text.size() + 1), length)), void();
      case 2:
        return text.insert(at, 1, static_cast<char>(below(256))), void();
      case 3:
        return text.insert(at, token()), void();
      default:
        return replace_number(text, at);
    }
  }

  std::string token() {
    static constexpr std::string_view kTokens[] = {"[",    "]",    "{",  "}",  "\"",   "'",      "\\",
                                                   ".",    "=",    ",",  "\n", "#",    "\"\"\"", "\xff",
                                                   "true", "none", "[[", ":",  "null", "../"};
    std::string all;
    for (auto count = below(10) == 0 ? 5000 : below(3) + 1; count > 0; --count)
      all += kTokens[below(std::size(kTokens))];
    return all;
  }

  /// The next one behind `at`, if there is one.
  void replace_number(std::string& text, size_t at) {
    const auto begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const auto end = text.find_first_not_of("0123456789.", begin);
    text.replace(begin, (end == std::string::npos ? text.size() : end) - begin, number());
  }

  std::mt19937_64 engine_;
};

}  // namespace lockstep::testing
