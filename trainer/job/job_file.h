#pragma once
#include <span>
#include <string>
#include <string_view>

#include "trainer/job/job.h"
#include "trainer/job/job_setting.h"

/// Reads jobs from TOML and writes them back.
///
/// Every problem is a BadInput of one line that starts with its place: "jobs/demo.toml:14: ..." or "command line: ...".
namespace lockstep::trainer {

/// The job of a TOML text; `name` stands for the file in messages. Keys that are absent keep their defaults.
Job parse_job(std::string_view text, const std::string& name, std::span<const Setting> overrides = {});

/// The job in the file `path`, changed by `overrides` in their order.
Job load_job(const std::string& path, std::span<const Setting> overrides = {});

/// The whole job as TOML, every key of the table spelled out; parse_job(to_toml(job), ...) gives the same job.
std::string to_toml(const Job& job);

/// Fails unless the file of a dataset is named: what train and verify need and dry runs do not.
void require_dataset_path(const Job& job);

}  // namespace lockstep::trainer
