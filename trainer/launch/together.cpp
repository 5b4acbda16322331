#include "trainer/launch/together.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "trainer/launch/rank_texts.h"

namespace lockstep::trainer {
namespace {

using nlohmann::json;

/// A file name may be any bytes.
constexpr auto kReplace = json::error_handler_t::replace;
constexpr auto kHeartbeat = std::chrono::milliseconds(250);

bool is_one_process(const Mesh& mesh) { return static_cast<int>(mesh.local_count()) == mesh.rank_count(); }

struct Failure {
  ExitCode code;
  std::string text;
  bool operator==(const Failure&) const = default;
};

/// How `work` ends, as something that can travel.
std::optional<Failure> failure_of(const std::function<void()>& work) try {
  work();
  return std::nullopt;
} catch (const Error& error) {
  return Failure{error.code(), error.what()};
} catch (const std::exception& error) {
  return Failure{ExitCode::kInternal, fmt::format("internal error: {}", error.what())};
}

[[noreturn]] void fail_as(ExitCode code, const std::string& text) {
  switch (code) {
    case ExitCode::kBadInput:
      throw BadInput(text);
    case ExitCode::kInconsistent:
      throw Inconsistency(text);
    case ExitCode::kTransport:
      throw TransportError(text);
    case ExitCode::kFile:
      throw FileError(text);
    case ExitCode::kInterrupted:
      throw Interrupted(text);
    default:
      throw InternalError(text);
  }
}

std::string to_text(const std::optional<Failure>& failure) {
  return failure ? json{{"code", failure->code}, {"text", failure->text}}.dump(-1, ' ', false, kReplace) : "";
}

std::optional<Failure> from_text(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto parsed = json::parse(text);
  return Failure{parsed.at("code").get<ExitCode>(), parsed.at("text").get<std::string>()};
}

void fail_on_all(const Mesh& mesh, const std::optional<Failure>& mine) {
  const auto texts = texts_of_all_ranks(mesh, to_text(mine));
  const auto first = std::find_if(texts.begin(), texts.end(), [](const auto& text) { return !text.empty(); });
  if (first == texts.end()) return;
  const bool alike = std::count(texts.begin(), texts.end(), *first) == static_cast<int64_t>(texts.size());
  const auto failure = *from_text(*first);
  fail_as(failure.code, alike ? failure.text : fmt::format("rank {}: {}", first - texts.begin(), failure.text));
}

}  // namespace

std::optional<Found> earliest(const Mesh& mesh, const std::optional<Found>& mine) {
  const auto texts =
      texts_of_all_ranks(mesh, mine ? json{mine->position, mine->text}.dump(-1, ' ', false, kReplace) : "");
  std::optional<Found> first;
  for (int rank = 0; rank < mesh.rank_count(); ++rank) {
    const auto& text = texts[static_cast<size_t>(rank)];
    if (text.empty()) continue;
    const auto found = json::parse(text);
    if (!first || found.at(0).get<int64_t>() < first->position) first = Found{found.at(0), found.at(1), rank};
  }
  return first;
}

void agreed(const Mesh& mesh, const std::function<void()>& work) {
  if (is_one_process(mesh)) return work();
  fail_on_all(mesh, failure_of(work));
}

void together(const Mesh& mesh, const std::function<void()>& work) {
  if (is_one_process(mesh)) return work();
  auto task = std::async(std::launch::async, failure_of, std::cref(work));
  while (any_rank(mesh, task.wait_for(kHeartbeat) != std::future_status::ready)) {
  }
  fail_on_all(mesh, task.get());
}

}  // namespace lockstep::trainer
