#pragma once
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "rng/distribution.h"
#include "rng/philox.h"

/// Reads rng/known_answers.txt, the one list that the CPU and the CUDA tests check; the file explains its lines.
namespace lockstep::rng {

struct PhiloxAnswer {
  int line = 0;
  uint32_t counter[4] = {}, key[2] = {}, words[4] = {};
};

struct DrawAnswer {
  int line = 0;
  ScalarKind kind = ScalarKind::kFloat32;
  uint64_t seed = 0, stream = 0, index = 0;
  Distribution distribution = {};
  std::vector<uint64_t> values = {};  ///< bits of consecutive elements
};

struct KnownAnswers {
  std::vector<PhiloxAnswer> philox;
  std::vector<DrawAnswer> draws;
};

inline ScalarKind parse_kind(const std::string& text) {
  for (const auto kind : {ScalarKind::kFloat32, ScalarKind::kFloat64, ScalarKind::kBFloat16, ScalarKind::kFloat16,
                          ScalarKind::kInt64, ScalarKind::kBool}) {
    if (name_of(kind) == text) return kind;
  }
  throw std::runtime_error("known_answers.txt: unknown dtype " + text);
}

inline Distribution parse_distribution(const std::string& name, const std::vector<double>& p) {
  if (name == "uniform") return uniform(p.at(0), p.at(1));
  if (name == "normal") return normal(p.at(0), p.at(1));
  if (name == "truncated_normal") return truncated_normal(p.at(0), p.at(1), p.at(2), p.at(3));
  if (name == "bernoulli") return bernoulli(p.at(0), p.at(1));
  if (name == "integers") return integers(static_cast<int64_t>(p.at(0)), static_cast<int64_t>(p.at(1)));
  throw std::runtime_error("known_answers.txt: unknown distribution " + name);
}

inline PhiloxAnswer parse_philox(std::istringstream& in, int line) {
  PhiloxAnswer answer{.line = line};
  in >> std::hex;
  for (auto& word : answer.counter) in >> word;
  for (auto& word : answer.key) in >> word;
  for (auto& word : answer.words) in >> word;
  if (!in) throw std::runtime_error("known_answers.txt:" + std::to_string(line) + ": malformed");
  return answer;
}

inline DrawAnswer parse_draw(std::istringstream& in, int line) {
  std::string kind, name, field;
  DrawAnswer answer{.line = line};
  in >> kind >> std::hex >> answer.seed >> answer.stream >> answer.index >> std::dec >> name;
  std::vector<double> parameters;
  while (in >> field && field != "=") parameters.push_back(std::stod(field));
  while (in >> field) answer.values.push_back(std::stoull(field, nullptr, 16));
  answer.kind = parse_kind(kind);
  answer.distribution = parse_distribution(name, parameters);
  return answer;
}

inline KnownAnswers read_known_answers(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read");
  KnownAnswers answers;
  std::string text;
  for (int line = 1; std::getline(file, text); ++line) {
    std::istringstream in(text);
    std::string what;
    if (!(in >> what) || what[0] == '#') continue;
    if (what == "philox")
      answers.philox.push_back(parse_philox(in, line));
    else if (what == "draw")
      answers.draws.push_back(parse_draw(in, line));
    else
      throw std::runtime_error("known_answers.txt:" + std::to_string(line) + ": unknown line " + what);
  }
  return answers;
}

/// Bits of element i of an array of `kind`.
inline uint64_t bits_at(const void* data, ScalarKind kind, std::size_t i) {
  const auto size = static_cast<std::size_t>(size_of(kind));
  uint64_t bits = 0;
  __builtin_memcpy(&bits, static_cast<const char*>(data) + i * size, size);
  return bits;
}

}  // namespace lockstep::rng
