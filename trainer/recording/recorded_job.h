#pragma once
#include <functional>
#include <memory>
#include <span>

#include "replay/format/recording.h"
#include "trainer/job/job.h"
#include "trainer/job/job_setting.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// The job of a recording, which may come from anybody: parsed with `changes`, resolved and checked as a job file is.
/// It also fits the recording: as many ranks, the batch's sizes. Throws BadInput with what is wrong.
Job recorded_job(const replay::StepRecording& recording, std::span<const Setting> changes = {});

/// The recorded state is what the job makes: the same names and, for the recording's rank, the same sizes. Compares
/// shapes alone, so that nothing is made that the recording does not hold. `make_model` as in TrainingRun::Options.
/// Throws FileError naming the tensor that is missing or does not fit.
void require_state_fits(const replay::StepRecording& recording, const Job& job,
                        const std::function<std::unique_ptr<models::Model>()>& make_model = {});

}  // namespace lockstep::trainer
