#include "trainer/job/job_reference.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "trainer/job/job_keys.h"
#include "trainer/job/torchtitan_keys.h"

namespace lockstep::trainer {
namespace {

constexpr std::string_view kIntroduction = R"(# Job files

A job is a TOML file; sections and keys are torchtitan v0.2.2's wherever it has them. Every key can be overridden on the
command line: `--training.steps 50` or `--training.steps=50`. A key that is not in these tables is an error with the
nearest name; all errors are named at once, and a value that is overridden is not looked at. `lockstep train job.toml
--print-job` prints the resolved job: every key spelled out, nothing left open.

A key means what it means in torchtitan. Where it does not, its row says "Differs from torchtitan", and a run says at its
start what that changes for its job.

This page is generated from the tables that the parser reads (trainer/job/job_keys.cpp, trainer/job/torchtitan_keys.cpp).
)";

constexpr std::string_view kNotSupported = R"(
## torchtitan keys without a counterpart

Accepted at the values shown, which ask for nothing. At others a run goes on where the last column says what it does instead, with
the same data and bits, and says so at its start; otherwise they are an error. `lockstep train --dry-run` lists both, and goes on.

| key | accepted | |
|---|---|---|
)";

std::string accepted(const Key& key) {
  const auto text = key.allowed.text();
  return text.empty() ? std::string(key.type()) : text;
}

std::string default_text(const Key& key) {
  const auto text = key.text(Job{});
  return text.empty() ? "none" : text;
}

std::string meaning(const Key& key) {
  const auto difference = difference_text(key.dotted());
  return key.explanation() + (difference.empty() ? "" : " " + difference);
}

std::string row(const Key& key) {
  return fmt::format("| `{}` | {} | `{}` | {} |\n", key.name, accepted(key), default_text(key), meaning(key));
}

std::string section_text(std::string_view section) {
  std::string rows;
  for (const auto& key : job_keys())
    if (key.section == section) rows += row(key);
  if (rows.empty()) return fmt::format("\n## [{}]\n\nNo supported keys yet.\n", section);
  return fmt::format("\n## [{}]\n\n| key | accepts | default | meaning |\n|---|---|---|---|\n{}", section, rows);
}

std::string neutral_text(const TorchtitanKey& key) {
  if (key.neutral == "*") return "any value";
  std::vector<std::string> values;
  for (const auto value : neutral_values(key)) values.push_back(value.empty() ? "`\"\"`" : fmt::format("`{}`", value));
  return fmt::format("{}", fmt::join(values, ", "));
}

}  // namespace

std::string job_reference_markdown() {
  std::string text(kIntroduction);
  for (const auto section : job_sections()) text += section_text(section);
  text += kNotSupported;
  for (const auto& key : torchtitan_keys())
    text +=
        fmt::format("| `{}` | {} | {}{}{} |\n", key.pattern, neutral_text(key), key.why,
                    key.instead.empty() ? "" : fmt::format("otherwise: {}", key.instead), difference_text(key.pattern));
  return text;
}

std::string job_reference_help() {
  constexpr size_t kColumn = 46;
  std::string text;
  for (const auto& key : job_keys()) {
    auto line = fmt::format("  --{} ({})", key.dotted(), default_text(key));
    line.resize(std::max(line.size() + 2, kColumn), ' ');
    text += line + meaning(key) + "\n";
  }
  return text;
}

}  // namespace lockstep::trainer
