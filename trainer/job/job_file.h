#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "trainer/job/job.h"
#include "trainer/job/job_setting.h"

/// Reads jobs from TOML and writes them back.
///
/// Every problem is one line that starts with its place: "jobs/demo.toml:14: ..." or "command line: ...".
namespace lockstep::trainer {

/// All the settings of a job that are refused; what() has a line for each.
class RefusedJob : public BadInput {
 public:
  explicit RefusedJob(const std::vector<std::string>& lines);
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

/// A setting that a run does not do as it says.
struct Unhonoured {
  std::string where, key, value;
  std::string instead;   ///< what is done
  bool refused = false;  ///< a run does not go on with it; a dry run does, as if it were not there
};

/// How a job is read, and what of it is not honoured.
struct JobReading {
  bool is_dry = false;  ///< goes on with what a run refuses
  std::vector<Unhonoured> unhonoured = {};
};

/// The job of a TOML text; `name` stands for the file in messages. Keys that are absent keep their defaults. Of several
/// settings of one key the last counts, and only that is looked at: an override also replaces a value that is wrong.
/// BadInput for text that is not TOML, RefusedJob for everything else that is wrong.
Job parse_job(std::string_view text, const std::string& name, std::span<const Setting> overrides, JobReading& reading);
Job parse_job(std::string_view text, const std::string& name, std::span<const Setting> overrides = {});

/// The same of a text that to_toml() wrote, in a checkpoint or a recording: a key that its build did not know yet has
/// the value that was true of all runs then, whatever its default is now.
Job parse_saved_job(std::string_view text, const std::string& name, std::span<const Setting> overrides = {});

/// The job in the file `path`, changed by `overrides` in their order. A file of more than 1 MiB is a BadInput. Adds to
/// `reading` what is not honoured.
Job load_job(const std::string& path, std::span<const Setting> overrides, JobReading& reading);
Job load_job(const std::string& path, std::span<const Setting> overrides = {});

/// The whole job as TOML, every key of the table spelled out; parse_job(to_toml(job), ...) gives the same job.
std::string to_toml(const Job& job);

/// Fails unless the file of a dataset is named: what train and verify need and dry runs do not.
void require_dataset_path(const Job& job);

}  // namespace lockstep::trainer
