#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "core/sanitized.h"
#include "tests/tools/goldens/bad_calls.h"
#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr BadCall kBadCalls[] = {
    {"", 2,
     "a command is needed: train, verify, replay, trace, report, schedule, plan, rules, bench, mutate, fuzz, generate, "
     "shrink, "
     "doctor, "
     "checkpoint, "
     "data, launch."},
    {"trian", 2,
     "trian is not a command. Did you mean train? The commands are train, verify, replay, trace, report, schedule, "
     "plan, "
     "rules, "
     "bench, "
     "mutate, fuzz, generate, shrink, doctor, "
     "checkpoint, "
     "data, launch."},
    {"--quiet", 2, "--quiet is not an option. 'lockstep --help' lists what is."},
    {"train", 2, "job is required. 'lockstep train --help' tells more."},
    {"train missing.toml", 2,
     "missing.toml: cannot be opened: No such file or directory. A job file (TOML) was expected."},
    {"train jobs", 2, "jobs: is not a regular file. A job file (TOML) was expected."},
    {"train jobs/demo.toml more", 2, "more is one argument too many; 'lockstep train --help' lists what is expected."},
    {"train jobs/demo.toml --verfy", 2,
     "--verfy is not an option. Did you mean --verify? 'lockstep train --help' lists what is."},
    {"train jobs/demo.toml --steps 5", 2, "--steps is not an option. Did you mean --training.steps?"},
    {"train jobs/demo.toml -z", 2, "-z is not an option. 'lockstep train --help' lists what is."},
    {"train jobs/demo.toml --training.steps", 2, "command line: --training.steps needs a value."},
    {"train jobs/demo.toml --parallelism.tensor_parallel_degree 65536", 2,
     "mesh dp_shard=2,tp=65536 has 131072 ranks; one process simulates 1024 at most. lockstep train --dry-run counts "
     "for "
     "any mesh."},
    {"train jobs/demo.toml --optimizer.lr 1e39", 2,
     "optimizer.lr is 1e+39, which float32 cannot hold: from 1.2e-38 to 3.4e+38."},
    {"train jobs/demo.toml -", 2, "- is not an option. 'lockstep train --help' lists what is."},
    {"train jobs/demo.toml --training.stpes 5", 2, "command line: training.stpes is not a key. Did you mean steps?"},
    {"train jobs/demo.toml --training.steps=five", 2, "command line: training.steps must be an integer, not \"five\"."},
    {"train jobs/demo.toml --training.steps -5", 2, "command line: training.steps is -5, must be at least 1."},
    {"train jobs/demo.toml --memory_estimation.enable true", 2,
     "command line: memory_estimation.enable = true asks for something that Lockstep does not support; leave it out or "
     "set it to "
     "false."},
    {"train jobs/demo.toml -q --parallelism.pipeline_parallel_degree 9", 2,
     "mesh axis pp=9: 1F1B makes 9 stages, and the model has 8 blocks: choose a smaller "
     "parallelism.pipeline_parallel_degree, or another pipeline_parallel_schedule."},
    {"train jobs/demo.toml -q --parallelism.context_parallel_degree 2 --parallelism.context_parallel_rotate_method "
     "alltoall",
     2,
     "training.seq_len 128: sequences are cut at 64, and canonical numerics takes the keys of a ring in blocks of 256. "
     "training.seq_len 512 would do. Choose another context_parallel_degree, or "
     "parallelism.context_parallel_rotate_method allgather or ulysses."},
    {"train jobs/demo.toml --training.global_batch_size 6", 2,
     "training.global_batch_size 6 is no multiple of training.local_batch_size 2 x data-parallel degree 2 = 4."},
    {"train jobs/demo.toml --model.name lama3", 2,
     "command line: model.name is \"lama3\", must be gpt2, llama3, mlp or moe. Did you mean llama3?"},
    {"train jobs/demo.toml --optimizer.name Adamv", 2,
     "command line: optimizer.name is \"Adamv\", must be AdamW, Adam, SGD, Lion, Muon or Ranger21. Did you mean "
     "AdamW?"},
    {"train jobs/demo.toml --optimizer.groups 3", 2,
     "command line: optimizer.groups must be a list of tables, not \"3\"."},
    {"train jobs/demo.toml --lr_scheduler.decay_type cosin", 2,
     "command line: lr_scheduler.decay_type is \"cosin\", must be linear, sqrt, cosine or inverse_root. Did you mean "
     "cosine?"},
    {"train jobs/demo.toml --training.dataset csv", 2,
     "command line: training.dataset is \"csv\", must be text, tokens, conversations or preferences."},
    {"train jobs/demo.toml --numerics.mode natve", 2,
     "command line: numerics.mode is \"natve\", must be canonical or native. Did you mean native?"},
    {"train jobs/demo.toml --optimizer.momentum 0.9", 2,
     "optimizer.momentum 0.9 is of SGD or Muon; optimizer.name is \"AdamW\". Leave it out or choose one of these."},
    {"train jobs/demo.toml --optimizer.name SGD --optimizer.momentum 1", 2,
     "command line: optimizer.momentum is 1, must be in [0, 1)."},
    {"train jobs/demo.toml --model.width 0", 2, "command line: model.width is 0, must be from 1 to 1048576."},
    {"train jobs/demo.toml --model.layers -1", 2, "command line: model.layers is -1, must be from 1 to 4096."},
    {"train jobs/demo.toml --model.vocabulary 16777217", 2,
     "command line: model.vocabulary is 16777217, must be from 1 to 16777216."},
    {"train jobs/demo.toml --model.dropout 1", 2, "command line: model.dropout is 1, must be in [0, 1)."},
    {"train jobs/demo.toml --model.heads six", 2, "command line: model.heads must be an integer, not \"six\"."},
    {"train jobs/demo.toml --model.hedas 6", 2, "command line: model.hedas is not a key. Did you mean heads?"},
    {"train jobs/demo.toml -q --dry-run --model.width 250", 2,
     "model.width 250 is no multiple of model.heads 16; set both so that one divides the other."},
    {"train jobs/demo.toml -q --dry-run --model.heads 8", 2,
     "model.heads 8 is no multiple of model.key_value_heads 16; set both so that one divides the other."},
    {"train jobs/demo.toml -q --dry-run --model.hidden 100", 2,
     "model.hidden 100 is no multiple of model.key_value_heads 16; set both so that one divides the other."},
    {"train jobs/demo.toml -q --dry-run --model.width 48", 2,
     "model.width 48 over model.heads 16 gives heads of 3 elements, which must be even: rotations turn pairs."},
    {"train jobs/demo.toml -q --dry-run --model.name mlp --model.heads 4", 2,
     "model.heads 4: model.name \"mlp\" has no such size; leave it out."},
    {"train jobs/demo.toml --json missing/x.json", 5, "missing/x.json: cannot be written: there is no folder missing."},
    {"train jobs/demo.toml --json tests", 5, "tests: cannot be written: it is a folder."},
    {"verify jobs/demo.toml --html missing/x.html", 5,
     "missing/x.html: cannot be written: there is no folder missing."},
    {"train jobs/demo.toml --verify --html tests", 5, "tests: cannot be written: it is a folder."},
    {"train jobs/demo.toml -q --html x.html", 2, "--html shows what verification says: add --verify."},
    {"verify jobs/demo.toml -q --meshes 'dp_shrd=2'", 2,
     "mesh \"dp_shrd=2\": dp_shrd is not an axis. Did you mean dp_shard? Axes are pp, dp_replicate, dp_shard, cp, tp, "
     "ep, etp."},
    {"verify jobs/demo.toml -q --meshes 'tp=2; dp_shard=3'", 2,
     "mesh dp_shard=3: the global batch of 4 samples does not divide over 3 data-parallel ranks; choose "
     "training.global_batch_size 12, or other degrees."},
    {"verify jobs/demo.toml -q --verify.meshes 'xx=2'", 2,
     "command line: verify.meshes is \"xx=2\", must be empty or meshes of pp, dp_replicate, dp_shard, cp, tp, ep and "
     "etp such "
     "as \"tp=2; dp_shard=2,tp=2\"."},
    {"verify jobs/demo.toml -q --verify.meshes 'tp=2; dp_shard=3'", 2,
     "mesh dp_shard=3: the global batch of 4 samples does not divide over 3 data-parallel ranks; choose "
     "training.global_batch_size 12, or other degrees."},
    {"verify jobs/demo.toml -q --odd-shapes abc", 2,
     "--odd-shapes: \"abc\" is no seed such as 7, and no run of 1000 seeds at most such as 1..5."},
    {"verify jobs/demo.toml -q --odd-shapes 5..1", 2,
     "--odd-shapes: \"5..1\" is no seed such as 7, and no run of 1000 seeds at most such as 1..5."},
    {"verify jobs/demo.toml -q --odd-shapes 1..1001", 2,
     "--odd-shapes: \"1..1001\" is no seed such as 7, and no run of 1000 seeds at most such as 1..5."},
    {"verify jobs/demo.toml -q --odd-shapes 1..", 2,
     "--odd-shapes: \"1..\" is no seed such as 7, and no run of 1000 seeds at most such as 1..5."},
    {"verify jobs/demo.toml -q --odd-shapes 1234567890123456", 2,
     "--odd-shapes: \"1234567890123456\" is no seed such as 7, and no run of 1000 seeds at most such as 1..5."},
    {"verify jobs/demo.toml -q --odd-shapes", 2,
     "--odd-shapes: 1 required SEED|FIRST..LAST missing. 'lockstep verify --help' tells more."},
    {"verify jobs/demo.toml -q --odd-shapes '' --model.width 7", 2,
     "--odd-shapes: \"\" is no seed such as 7, and no run of 1000 seeds at most such as 1..5."},
    {"train jobs/demo.toml -q --dry-run --odd-shapes 1", 2,
     "--odd-shapes is not an option. 'lockstep train --help' lists what is."},
    {"train jobs/demo.toml -q --training.dataset_path=", 2,
     "training.dataset_path is not set; it names the data to train on."},
    {"verify jobs/demo.toml -q --training.dataset_path=", 2,
     "training.dataset_path is not set; it names the data to train on."},
    {"doctor --training.steps 3", 2, "--training.steps is a key of jobs; lockstep doctor takes no job."},
    {"bench", 2, "name is required. 'lockstep bench --help' tells more."},
    {"bench dispach", 2,
     "dispach is not a benchmark. Did you mean dispatch? The benchmarks are collectives, dispatch, forecast, gpu, "
     "month, "
     "numerics, peers, processes, record, rng, scale, step, verify."},
    {"mutate --class M22", 2,
     "--class: there is no class M22; they are M1 to M21, as docs/mutation_score.md lists them."},
    {"mutate --each 0", 2, "--each: Value 0 not in range 1 to 100000. 'lockstep mutate --help' tells more."},
    {"bench dispatch --rows 'mm_*'", 2,
     "--rows is for lockstep bench collectives, forecast, gpu, numerics, peers, processes, scale, verify."},
    {"bench step --device cuda", 2, "--device is for lockstep bench peers."},
    {"bench peers --device gpu", 2, "gpu is not a device. Did you mean cpu? The devices are cpu, cuda."},
    {"bench numerics --instructions avx", 2,
     "avx is not a CPU level. Did you mean avx2? The CPU levels are baseline, avx2, avx512."},
    {"checkpoint", 2, "A subcommand is required. 'lockstep checkpoint --help' tells more."},
    {"checkpoint inspect missing", 2, "missing: no such checkpoint folder."},
    {"checkpoint merge jobs outputs/no-such-merge", 2,
     "jobs: holds no weights: a checkpoint has index.json, Hugging Face's have config.json and model.safetensors, "
     "PyTorch's .metadata."},
    {"checkpoint inspect jobs", 5, "jobs: incomplete checkpoint: it has no index.json."},
};

TEST(CommandLine, BadCallsSayWhatIsWrongInOneLine) { expect_one_line_each(kBadCalls); }

TEST(CommandLine, ABadJobFileIsNamedWithItsLine) {
  const TemporaryFolder folder;
  const auto path = folder.write("job.toml", "[parallelism]\ntensor_parallel_degre = 2\n");
  const auto run = run_lockstep("train " + path);
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.err, "lockstep: " + path +
                         ":2: parallelism.tensor_parallel_degre is not a key. Did you mean tensor_parallel_degree?\n");
}

TEST(CommandLine, AStepThatCannotFitIsRefusedAtOnce) {
  for (const char* size : {"--training.seq_len 1000000000 --training.local_batch_size 1000000",
                           "--training.local_batch_size 1073741824 --training.global_batch_size -1"}) {
    const auto run = run_lockstep("train jobs/demo.toml " + std::string(size));
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err,
                ::testing::ContainsRegex("lockstep: a step of [0-9]+ samples of [0-9]+ tokens takes [0-9]+ GiB for "
                                         "the tokens alone, this machine has [0-9]+ GiB. Choose a smaller"));
  }
}

TEST(CommandLine, EveryRefusedKeyHasALine) {
  const TemporaryFolder folder;
  const auto path = folder.write("job.toml", "[training]\nsteps = 0\nstpes = 2\n[memory_estimation]\nenable = true\n");
  const auto run = run_lockstep("train " + path + " --training.steps 5 --optimizer.lr fast");
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(
      run.err,
      "lockstep: " + path + ":3: training.stpes is not a key. Did you mean steps?\nlockstep: " + path +
          ":5: memory_estimation.enable = true asks for something that Lockstep does not support; leave it out or "
          "set it to false.\n"
          "lockstep: command line: optimizer.lr must be a number, not \"fast\".\n");
}

TEST(CommandLine, ManyProcessesAreForTrainAndVerify) {
  const auto dry = run_lockstep("train jobs/demo.toml --dry-run", "RANK=1 WORLD_SIZE=4 ");
  EXPECT_EQ(dry.code, 2);
  EXPECT_EQ(dry.err,
            "lockstep: this is one of 4 processes, by the variables that torchrun sets; only lockstep train and "
            "lockstep verify run in many. Start one process, which simulates the mesh.\n");
  for (const char* command : {"train", "verify"}) {
    const auto run = run_lockstep(std::string(command) + " jobs/demo.toml", "RANK=1 WORLD_SIZE=4 ");
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr("every process needs the job's token"));
  }
}

TEST(CommandLine, EveryCommandHasHelpWithAnExample) {
  for (const std::string command : {"", "train", "verify", "report", "schedule", "plan", "rules", "bench", "mutate",
                                    "fuzz", "shrink", "doctor", "checkpoint", "checkpoint inspect", "launch"}) {
    const auto run = run_lockstep(command + " --help");
    EXPECT_EQ(run.code, 0) << command;
    EXPECT_EQ(run.err, "") << command;
    EXPECT_THAT(run.out, HasSubstr("Example:\n  lockstep " + command)) << command;
    EXPECT_THAT(run.out, HasSubstr("Usage: lockstep " + command)) << command;
  }
  EXPECT_THAT(run_lockstep("train --help").out,
              AllOf(HasSubstr("--training.steps (10000)"), HasSubstr("--model.key_value_heads (none)"),
                    HasSubstr("SGD = stochastic gradient descent")));
  EXPECT_EQ(run_lockstep("--version").out, "lockstep 0.1.0\n");
}

TEST(CommandLine, TheFirstOutputComesWithinATenthOfASecond) {
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run_lockstep("train jobs/demo.toml --print-job");
    best = std::min(best, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(best, std::chrono::milliseconds(kSanitized ? 1000 : 100));
}

TEST(CommandLine, ThePrintedJobIsAJobThatPrintsItself) {
  const TemporaryFolder folder;
  const auto once =
      run_lockstep("train jobs/demo.toml --print-job --training.steps 7 --verify.enable --optimizer.lr=1e-4");
  ASSERT_EQ(once.code, 0) << once.err;
  EXPECT_THAT(once.out, HasSubstr("\nsteps = 7\n"));
  EXPECT_THAT(once.out, HasSubstr("\nlr = 0.0001\n"));
  EXPECT_THAT(once.out, HasSubstr("[verify]\nenable = true\n"));
  EXPECT_THAT(once.out, HasSubstr("\nglobal_batch_size = 4\n")) << "resolved";
  EXPECT_EQ(run_lockstep("train --print-job " + folder.write("job.toml", once.out)).out, once.out);
}

TEST(CommandLine, GreetsUnlessQuiet) {
  EXPECT_EQ(run_lockstep("train jobs/demo.toml --print-job").err,
            "Lockstep demo: llama3 debugmodel on dp_shard=2,tp=2, simulated in one process\n"
            "compute float32, seed 42, 60 steps of 4 x 128 tokens (local batch 2, accumulated 1 times)\n");
  EXPECT_EQ(run_lockstep("train jobs/demo.toml --print-job -q").err, "");
}

TEST(CommandLine, SaysAtTheStartWhatTorchtitanWouldDoOtherwise) {
  const std::string job =
      "train jobs/demo.toml --print-job --training.local_batch_size 6 --training.global_batch_size "
      "24 --parallelism.context_parallel_degree 2";
  EXPECT_EQ(run_lockstep(job).err,
            "Lockstep demo: llama3 debugmodel on dp_shard=2,cp=2,tp=2, simulated in one process\n"
            "compute float32, seed 42, 60 steps of 24 x 128 tokens (local batch 4, accumulated 3 times)\n"
            "unlike torchtitan: training.local_batch_size 6 is lowered to 4: 24 samples on 2 data-parallel ranks are "
            "summed in complete subtrees\n"
            "unlike torchtitan: no load balancer of context parallelism: late ranks attend to more keys\n");
  EXPECT_EQ(run_lockstep(job + " -q").err, "");
}

TEST(CommandLine, AFullStandardOutputIsAFileError) {
  const int status = std::system("'" LOCKSTEP_BINARY "' --help >/dev/full 2>/dev/null");
  EXPECT_EQ(WEXITSTATUS(status), 5);
}

}  // namespace
}  // namespace lockstep
