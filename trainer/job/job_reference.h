#pragma once
#include <string>

/// The tables of keys as text for people.
namespace lockstep::trainer {

/// docs/job.md.
std::string job_reference_markdown();

/// One line per key for `--help`: "  --training.steps INT = 10000   Steps to train ...".
std::string job_reference_help();

}  // namespace lockstep::trainer
