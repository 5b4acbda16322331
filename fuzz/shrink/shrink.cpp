#include "fuzz/shrink/shrink.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "fuzz/shrink/smaller_cases.h"
#include "replay/op_case/case_parts.h"
#include "replay/op_case/case_trial.h"
#include "replay/sandbox/reader_process.h"

namespace lockstep::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

/// With its operands cut anew it has to fail, too.
std::optional<WholeCase> start_of(const replay::OpCase& one, const Rules& rules) {
  auto whole = whole_case(one);
  for (const bool spread : {false, true}) {
    whole.spread = spread;
    if (blame_of(whole, rules)) return whole;
  }
  return std::nullopt;
}

WholeCase smallest_of(WholeCase whole, double seconds, const Rules& rules, int64_t& tried) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (bool is_smaller = true; is_smaller;) {
    is_smaller = false;
    for (auto& candidate : smaller_cases(whole)) {
      if (Clock::now() >= end) return whole;
      ++tried;
      if (!blame_of(candidate, rules)) continue;
      whole = std::move(candidate);
      is_smaller = true;
      break;
    }
  }
  return whole;
}

Json shrunk_json(const replay::OpCase& one, double seconds, const Rules& rules) {
  if (!replay::try_case(one, rules)) fail<BadInput>("it agrees with one device here: there is nothing to make smaller");
  const auto start = start_of(one, rules);
  if (!start) fail<BadInput>("it differs with the very shards that it holds alone, and cannot be made smaller");
  int64_t tried = 0;
  const auto whole = smallest_of(*start, seconds, rules, tried);
  auto smallest = cut_case(whole);
  const auto finding = replay::try_case(smallest, rules).value().text();
  return {{"before", describe(*start)},
          {"after", describe(whole)},
          {"finding", finding},
          {"tried", tried},
          {"arguments", smallest.arguments},
          {"mesh", smallest.mesh},
          {"tensors", replay::text_of_tensors(smallest)}};
}

/// In the child. JSON holds text: bytes of tensors go as CBOR.
std::string answer_of(const replay::OpCase& one, double seconds, const Rules& rules) {
  Json answer;
  try {
    answer = shrunk_json(one, seconds, rules);
  } catch (const BadInput& error) {
    answer = {{"refused", error.what()}};
  } catch (const std::exception& error) {
    const std::string what = error.what();
    fail<FileError>("cannot be run: {}", what.substr(0, what.find('\n')));
  }
  const auto bytes = Json::to_cbor(answer);
  return {bytes.begin(), bytes.end()};
}

replay::ReaderLimits limits_of(const replay::OpCase& one, double seconds) {
  size_t bytes = 0;
  for (const auto& tensor : one.tensors) bytes += tensor.bytes.size();
  auto limits = replay::limits_for_op(bytes);
  limits.processor_seconds += static_cast<unsigned>(seconds) + 1;
  limits.wall += std::chrono::seconds(10 * static_cast<int64_t>(seconds) + 10);
  limits.answer += 2 * bytes;
  return limits;
}

}  // namespace

Shrunk shrink(const replay::OpCase& one, double seconds, const Rules& rules) {
  replay::ReaderProcess process([&] { return answer_of(one, seconds, rules); }, limits_of(one, seconds));
  const auto answer = Json::from_cbor(process.answer(), /*strict=*/true, /*allow_exceptions=*/false);
  if (!answer.is_object()) fail<FileError>("cannot be run: the op's process gave another answer than it should");
  if (answer.contains("refused")) fail<BadInput>("{}", answer.at("refused").get<std::string>());
  Shrunk shrunk{one, answer.at("before"), answer.at("after"), answer.at("finding"), answer.at("tried")};
  shrunk.smallest.arguments = answer.at("arguments"), shrunk.smallest.mesh = answer.at("mesh");
  shrunk.smallest.finding = shrunk.finding;
  shrunk.smallest.tensors.clear();
  replay::add_tensors(shrunk.smallest, answer.at("tensors").get<std::string>());
  return shrunk;
}

}  // namespace lockstep::fuzz
