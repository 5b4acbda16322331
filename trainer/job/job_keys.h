#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/names/choices.h"

/// The table of every key a job may hold. Adding a key is a member in trainer/job/job.h and one row in job_keys.cpp or
/// model_keys.cpp.
namespace lockstep::trainer {

/// Where a key's value lives in a Job; the alternative is the key's type.
using Field = std::variant<bool& (*)(Job&), int64_t& (*)(Job&), double& (*)(Job&), std::string& (*)(Job&),
                           std::optional<int64_t>& (*)(Job&), std::optional<double>& (*)(Job&),
                           std::vector<std::string>& (*)(Job&), std::vector<ParameterGroup>& (*)(Job&),
                           std::optional<bool>& (*)(Job&), std::vector<std::vector<std::string>>& (*)(Job&)>;

/// Which values of the right type a key accepts; all of them when every member is empty.
struct Allowed {
  std::string_view range = {};               ///< what `number` or `word` accepts, completes "must be ..."
  bool (*number)(double) = nullptr;          ///< for integers and numbers
  bool (*word)(std::string_view) = nullptr;  ///< for strings
  Choices choices = {};                      ///< for strings: one of these names

  bool accepts(double value) const { return !number || number(value); }
  bool accepts(std::string_view value) const;
  /// Completes "must be ..."; empty where everything of the type is accepted.
  std::string text() const { return choices.empty() ? std::string(range) : names_text(choices); }
};

struct Key {
  std::string_view section;
  std::string_view name;
  Field field;
  Allowed allowed;
  std::string_view help;

  std::string dotted() const;                                    ///< "training.steps"
  std::string explanation() const;                               ///< help, and what the choices stand for
  std::string_view type() const;                                 ///< "an integer", completes "must be ..."
  bool accepts_bare_flag() const { return field.index() == 0; }  ///< `--verify.enable` means true
  std::string text(const Job& job) const;  ///< the value in `job` as TOML; empty for an optional that holds nothing
};

/// Rows in the order of sections and keys used for printing.
std::span<const Key> job_keys();

/// The first of them: of what a job is, and of its model (model_keys.cpp).
std::span<const Key> model_keys();

/// Section names in printing order, those without supported keys included.
std::span<const std::string_view> job_sections();

/// The row of "section.name", or null.
const Key* find_job_key(std::string_view dotted);

}  // namespace lockstep::trainer
