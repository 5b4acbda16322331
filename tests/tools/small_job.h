#pragma once
#include <string>

#include "tests/support/temporary_folder.h"

namespace lockstep {

/// A job of an MLP that trains in milliseconds on dp_shard=2, with text and output in `folder`. Returns its path.
inline std::string write_small_job(const TemporaryFolder& folder) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "the cat " + std::to_string(i * i % 97) + " sat on the mat, ";
  folder.write("text.txt", text);
  return folder.write("job.toml",
                      "[job]\ndump_folder = \"" + folder.file("out") +
                          "\"\ndescription = \"test\"\n[model]\nname = \"mlp\"\n[training]\ndataset_path = \"" +
                          folder.file("text.txt") +
                          "\"\nseq_len = 16\nlocal_batch_size = 4\nsteps = 4\n[lr_scheduler]\nwarmup_steps "
                          "= 1\n[parallelism]\ndata_parallel_shard_degree = 2\n[checkpoint]\ninterval = 2\n");
}

}  // namespace lockstep
