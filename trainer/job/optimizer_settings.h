#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/job/job_setting.h"

/// What [optimizer] says beyond values of keys: `[[optimizer.groups]]`, settings of some parameters by patterns of
/// their names, and which keys an optimizer heeds.
namespace lockstep::trainer {

/// The groups that a setting writes as a TOML list of tables; none if it is something else. Throws BadInput for a table
/// with an unknown key, a value out of range, no pattern, or settings beside `frozen`.
std::optional<std::vector<ParameterGroup>> parse_groups(const Setting& setting);

/// As such a list: [{pattern = "*.norm.weight", weight_decay = 0.0}].
std::string groups_text(const std::vector<ParameterGroup>& groups);

/// Whether `pattern` describes the whole of `name`: `*` stands for any characters, also none and dots, `?` for one.
bool fits(std::string_view pattern, std::string_view name);

/// Throws BadInput where [lora], [optimizer], [ranger21] or [lr_scheduler] says something that the chosen optimizer
/// would not heed, or that contradicts what else they say. A value that is the default asks for nothing: printed jobs
/// have all.
void require_optimizer_heeds(const Job& job);

/// Throws BadInput for numbers that float32, which parameters and their updates are, makes infinite or 0.
void require_float_range(const OptimizerSection& optimizer);

}  // namespace lockstep::trainer
