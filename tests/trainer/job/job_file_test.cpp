#include "trainer/job/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "tests/support/temporary_folder.h"
#include "trainer/job/job_keys.h"

namespace lockstep::trainer {
namespace {

/// The message of the BadInput that `text` (and overrides) gives; empty when it parses.
std::string problem(std::string_view text, std::vector<Setting> overrides = {}) {
  try {
    parse_job(text, "job.toml", overrides);
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

struct BadJob {
  std::string_view text;
  std::string_view message;
};

// The exact text is what a user sees: one line that says what, where and what was expected.
constexpr BadJob kBadJobs[] = {
    {"[parallelism]\n\ntensor_parallel_degre = 2",
     "job.toml:3: parallelism.tensor_parallel_degre is not a key. Did you mean tensor_parallel_degree?"},
    {"[training]\nfoo_bar_baz = 2",
     "job.toml:2: training.foo_bar_baz is not a key. 'lockstep train --help' lists the keys."},
    {"[optimizer]\nseq_len = 2", "job.toml:2: optimizer.seq_len is not a key. Did you mean training.seq_len?"},
    {"[trainning]\nsteps = 2", "job.toml:2: [trainning] is not a section. Did you mean [training]?"},
    {"\n[trainning]", "job.toml:2: [trainning] is not a section. Did you mean [training]?"},
    {"steps = 2", "job.toml:1: steps stands outside any section. Did you mean training.steps?"},
    {"stepp = 2",
     "job.toml:1: stepp stands outside any section and is not a key. 'lockstep train --help' lists the keys."},
    {"[training]\nsteps = \"ten\"", "job.toml:2: training.steps must be an integer, not \"ten\"."},
    {"[training]\nsteps = 1.5", "job.toml:2: training.steps must be an integer, not 1.5."},
    {"[training]\nsteps = true", "job.toml:2: training.steps must be an integer, not true."},
    {"[training]\nsteps = [1]", "job.toml:2: training.steps must be an integer, not [1]."},
    {"[training]\nsteps = 0", "job.toml:2: training.steps is 0, must be at least 1."},
    {"[optimizer]\nlr = -1", "job.toml:2: optimizer.lr is -1, must be at least 0."},
    {"[optimizer]\nlr = nan", "job.toml:2: optimizer.lr is nan, must be at least 0."},
    {"[optimizer]\nlr = inf", "job.toml:2: optimizer.lr is inf, must be at least 0."},
    {"[optimizer]\nlr = \"fast\"", "job.toml:2: optimizer.lr must be a number, not \"fast\"."},
    {"[optimizer]\nbeta1 = 1.0", "job.toml:2: optimizer.beta1 is 1.0, must be in [0, 1)."},
    {"[model]\nname = \"bert\"", "job.toml:2: model.name is \"bert\", must be gpt2, llama3, mlp or moe."},
    {"[model]\nname = 3", "job.toml:2: model.name must be a string, not 3."},
    {"[checkpoint]\nenable = 1", "job.toml:2: checkpoint.enable must be true or false, not 1."},
    {"[parallelism]\ndata_parallel_shard_degree = 0",
     "job.toml:2: parallelism.data_parallel_shard_degree is 0, must be -1 or from 1 to 65536."},
    {"[training]\nmixed_precision_reduce = \"bfloat16\"",
     "job.toml:2: training.mixed_precision_reduce is \"bfloat16\", must be float32."},
    {"[activation_checkpoint]\nselective_ac_option = \"0\"",
     "job.toml:2: activation_checkpoint.selective_ac_option is \"0\", must be op, linear or a layer period such as "
     "\"2\"."},
    {"[activation_checkpoint]\nmemory_budget = 1.5",
     "job.toml:2: activation_checkpoint.memory_budget is 1.5, must be in [0, 1]."},
    {"[memory_estimation]\nenable = true",
     "job.toml:2: memory_estimation.enable = true asks for something that Lockstep does not support; leave it out or "
     "set it to false."},
    {"[checkpoint]\nasync_mode = \"asynk\"",
     "job.toml:2: checkpoint.async_mode is \"asynk\", must be disabled or async. Did you mean async?"},
    {"[training]\ndataset = \"c5\"",
     "job.toml:2: training.dataset is \"c5\", must be text, tokens, conversations or preferences."},
    {"[training]\ndataset = \"c4\"",
     "job.toml:2: training.dataset = c4 needs training.dataset_path: files of tokens, which lockstep data prepare "
     "makes "
     "of documents; nothing is downloaded."},
    {"[model]\nconverters = [\"float9\"]",
     "job.toml:2: model.converters is [\"float9\"], must be quantize.linear.float8 or quantize.linear.mx."},
    {"[quantize.linear.float8]\nrecipe_name = \"rowwsie\"",
     "job.toml:2: quantize.linear.float8.recipe_name is \"rowwsie\", must be tensorwise, rowwise or "
     "rowwise_with_gw_hp. "
     "Did you mean rowwise?"},
    {"[quantize.linear.float8]\nrecipe_nmae = \"rowwise\"",
     "job.toml:2: quantize.linear.float8.recipe_nmae is not a key. Did you mean linear.float8.recipe_name?"},
    {"[quantize]\nrotated_block = 48",
     "job.toml:2: quantize.rotated_block is 48, must be 0 or a power of two from 2 to 32768."},
    {"[checkpoint]\ninitial_load_in_hf_quantized = true",
     "job.toml:2: checkpoint.initial_load_in_hf_quantized = true asks for something that Lockstep does not support; "
     "leave it out or "
     "set it to false."},
    {"[training]\ndtype = \"bfloat16\"",
     "job.toml:2: training.dtype = bfloat16 asks for something that Lockstep does not support; leave it out or set it "
     "to float32."},
    {"[compile]\nenabel = false", "job.toml:2: compile.enabel is not a key. 'lockstep train --help' lists the keys."},
};

TEST(JobFile, NamesPlaceProblemAndExpectation) {
  for (const auto& bad : kBadJobs) EXPECT_EQ(problem(bad.text), bad.message) << bad.text;
}

TEST(JobFile, RefusesTextThatIsNotToml) {
  EXPECT_THAT(problem("[training]\nsteps = = 3"), testing::StartsWith("job.toml:2: "));
  EXPECT_THAT(problem("[training]\nsteps = 3\nsteps = 4"), testing::StartsWith("job.toml:3: "));
}

TEST(JobFile, AcceptsTorchtitanKeysThatAskForNothing) {
  const auto* text = R"(
[job]
print_config = true
[compile]
enable = false
components = ["model", "loss"]
[model]
converters = []
[activation_checkpoint]
per_op_sac_force_recompute_mm_shapes_by_fqns = ["moe.router.gate"]
[quantize.linear.float8]
filter_fqns = ["output"]
[training.dataloader]
num_workers = 0
pin_memory = true
[validation]
enable = false
freq = 5
[record]
)";
  EXPECT_EQ(problem(text), "");
}

TEST(JobFile, NamesEverythingThatIsRefusedAtOnce) {
  const auto* text = "[training]\nstpes = 2\nseq_len = 0\n[memory_estimation]\nenable = true\n[optimizer]\nlr = 1e-3\n";
  EXPECT_EQ(
      problem(text, {command_line_setting("model.name", "bert")}),
      "job.toml:2: training.stpes is not a key. Did you mean steps?\n"
      "job.toml:3: training.seq_len is 0, must be from 1 to 1073741824.\n"
      "job.toml:5: memory_estimation.enable = true asks for something that Lockstep does not support; leave it out or "
      "set it to false.\n"
      "command line: model.name is \"bert\", must be gpt2, llama3, mlp or moe.");
}

TEST(JobFile, AKeyBreaksNoLine) {
  EXPECT_EQ(problem("[training]\n\"a\\nb\\u001b\" = 1"),
            "job.toml:2: training.a\\x0ab\\x1b is not a key. 'lockstep train --help' lists the keys.");
  EXPECT_EQ(problem("[training]\n\"a\\n\" = 1\n\"a\\n\" = 2").find('\n'), std::string::npos);
}

TEST(JobFile, NamesTwentyOfThousands) {
  std::string text = "[training]\n";
  for (int i = 0; i < 1000; ++i) text += "key_" + std::to_string(i) + " = 1\n";
  const auto message = problem(text);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20);
  EXPECT_THAT(message, testing::StartsWith("job.toml:2: training.key_0 is not a key."));
  EXPECT_THAT(message, testing::EndsWith("\njob.toml: there is more; is this a job?"));
}

TEST(JobFile, AnOverrideReplacesWhatIsWrongInTheFile) {
  const auto* text = "[training]\nsteps = 0\nseq_len = \"long\"\n[compile]\nenable = true\n[model]\nname = \"bert\"\n";
  const std::vector<Setting> overrides = {
      command_line_setting("training.steps", "7"), command_line_setting("training.seq_len", "8"),
      command_line_setting("compile.enable", "false"), command_line_setting("model.name", "mlp")};
  EXPECT_EQ(problem(text, overrides), "");
  EXPECT_EQ(parse_job(text, "job.toml", overrides).training.steps, 7);
  EXPECT_EQ(problem(text, {overrides.begin(), overrides.end() - 1}),
            "job.toml:7: model.name is \"bert\", must be gpt2, llama3, mlp or moe.");
}

TEST(JobFile, AnOverrideHidesNoMisspelledKey) {
  EXPECT_EQ(problem("[training]\nstpes = 1", {command_line_setting("training.stpes", "2")}),
            "command line: training.stpes is not a key. Did you mean steps?");
  EXPECT_EQ(problem("", {command_line_setting("training.steps", "ten"), command_line_setting("training.steps", "3")}),
            "");
}

TEST(JobFile, AnIntegerServesAsANumber) {
  EXPECT_EQ(parse_job("[training]\nmax_norm = 2", "job.toml").training.max_norm, 2.0);
}

TEST(JobFile, OverridesWinInTheirOrder) {
  const std::vector<Setting> overrides = {
      command_line_setting("training.steps", "50"), command_line_setting("optimizer.lr", "1e-3"),
      command_line_setting("training.steps", "60"), command_line_setting("lr_scheduler.decay_ratio", "none")};
  const auto job = parse_job("[training]\nsteps = 7\n[lr_scheduler]\ndecay_ratio = 0.5", "job.toml", overrides);
  EXPECT_EQ(job.training.steps, 60);
  EXPECT_EQ(job.optimizer.lr, 1e-3);
  EXPECT_FALSE(job.lr_scheduler.decay_ratio.has_value());
}

TEST(JobFile, OverridesAreCheckedLikeTheFile) {
  const auto message = [](const char* key, const char* value) {
    return problem("", {command_line_setting(key, value)});
  };
  EXPECT_EQ(message("training.steps", "ten"), "command line: training.steps must be an integer, not \"ten\".");
  EXPECT_EQ(message("training.steps", "5x"), "command line: training.steps must be an integer, not \"5x\".");
  EXPECT_EQ(message("training.steps", ""), "command line: training.steps must be an integer, not \"\".");
  EXPECT_EQ(message("training.steps", "0"), "command line: training.steps is 0, must be at least 1.");
  EXPECT_EQ(message("verify.enable", "yes"), "command line: verify.enable must be true or false, not \"yes\".");
  EXPECT_EQ(message("training.step", "1"), "command line: training.step is not a key. Did you mean steps?");
  EXPECT_EQ(message("model.name", "bert"), "command line: model.name is \"bert\", must be gpt2, llama3, mlp or moe.");
}

/// All that older builds knew was left out of weight decay.
TEST(JobFile, ASavedJobMeansWhatItMeantWhenItWasSaved) {
  const auto decays = [](std::string_view text, std::vector<Setting> overrides = {}) {
    return parse_saved_job(text, "saved", overrides).optimizer.decay_1d;
  };
  EXPECT_TRUE(parse_job("", "job.toml").optimizer.decay_1d);
  EXPECT_FALSE(decays("[optimizer]\nlr = 1e-3"));
  EXPECT_TRUE(decays("[optimizer]\ndecay_1d = true"));
  EXPECT_TRUE(decays("", {command_line_setting("optimizer.decay_1d", "true")}));
  EXPECT_TRUE(decays(to_toml({})));
}

TEST(JobFile, AMissingFileIsNamed) {
  EXPECT_THROW(
      try { load_job("/nonexistent/job.toml"); } catch (const BadInput& error) {
        EXPECT_STREQ(
            error.what(),
            "/nonexistent/job.toml: cannot be opened: No such file or directory. A job file (TOML) was expected.");
        throw;
      },
      BadInput);
}

TEST(JobFile, AHugeFileIsNotRead) {
  const TemporaryFolder folder;
  const auto path = folder.write("job.toml", "");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  try {
    load_job(path);
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_EQ(
        error.what(),
        path + ": is of 1099511627776 bytes, 1048576 are the most that it can be. A job file (TOML) was expected.");
  }
}

TEST(JobFile, TheDemoIsValid) {
  const auto job = load_job(LOCKSTEP_SOURCE_DIR "/jobs/demo.toml");
  EXPECT_EQ(job.debug.seed, 42);
  EXPECT_EQ(job.parallelism.tensor_parallel_degree, 2);
}

/// Small, with dropout, in three microbatches on a mesh that cuts samples and sums.
TEST(JobFile, TheJobsToVerifyAreValid) {
  for (const char* name : {"verify", "verify_gpt2"}) {
    const auto job = load_job(fmt::format(LOCKSTEP_SOURCE_DIR "/jobs/{}.toml", name));
    EXPECT_EQ(job.model.name, std::string_view(name) == "verify" ? "llama3" : "gpt2");
    EXPECT_EQ(job.model.dropout, 0.1) << name;
    EXPECT_EQ(job.training.global_batch_size, 3 * 2 * job.training.local_batch_size) << name;
    EXPECT_EQ(job.parallelism.data_parallel_shard_degree, 2) << name;
    EXPECT_EQ(job.parallelism.tensor_parallel_degree, 2) << name;
  }
  EXPECT_EQ(load_job(LOCKSTEP_SOURCE_DIR "/jobs/verify.toml").model.key_value_heads, 2);
}

/// A value that the key accepts, as an arbitrary one filtered by the table's own predicates.
template <class T>
T any_value(const Key& key) {
  if constexpr (std::is_same_v<T, bool>) return *rc::gen::arbitrary<bool>();
  if constexpr (std::is_same_v<T, int64_t>)
    return *rc::gen::suchThat(
        rc::gen::oneOf(rc::gen::arbitrary<int64_t>(), rc::gen::inRange<int64_t>(-1, 70000),
                       rc::gen::inRange<int64_t>(0, 10)),
        [&](int64_t x) { return !key.allowed.number || key.allowed.number(static_cast<double>(x)); });
  if constexpr (std::is_same_v<T, double>)
    return *rc::gen::suchThat(
        rc::gen::map(rc::gen::pair(rc::gen::arbitrary<int32_t>(), rc::gen::inRange(-40, 40)),
                     [](const auto& parts) { return std::ldexp(std::abs(parts.first), parts.second - 31); }),
        [&](double x) { return !key.allowed.number || key.allowed.number(x); });
  if constexpr (std::is_same_v<T, std::string>) {
    if (key.name == "description" || key.allowed.text().empty()) {
      auto text = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
      return text;
    }
    for (const char* word : {"llama3",
                             "AdamW",
                             "cosine",
                             "text",
                             "dpo",
                             "async",
                             "bfloat16",
                             "float32",
                             "never",
                             "selective",
                             "3",
                             "native",
                             "ring:2",
                             "tcp",
                             "cuda",
                             "ulysses",
                             "headtail",
                             "rowwise",
                             "mxfp4_emulated",
                             "tp=2; dp_shard=2,tp=3",
                             "0123456789abcdef0123456789abcdef"})
      if (key.allowed.accepts(std::string_view(word))) return word;
    return "?";
  }
  if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    auto names = *rc::gen::container<std::vector<std::string>>(
        rc::gen::element<std::string>("optimizer.lr", "debug.seed", "model.layers", "step", "ops", "replicas"));
    std::erase_if(names, [&](std::string_view name) { return !key.allowed.accepts(name); });
    return names;
  }
  if constexpr (std::is_same_v<T, std::vector<std::vector<std::string>>>)
    return *rc::gen::container<T>(
        rc::gen::container<std::vector<std::string>>(rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127))));
  if constexpr (std::is_same_v<T, std::vector<ParameterGroup>>) {
    std::vector<ParameterGroup> groups(*rc::gen::inRange<size_t>(0, 4));
    for (auto& group : groups) {
      group.pattern = "*" + *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
      group.frozen = *rc::gen::arbitrary<bool>();
      if (!group.frozen && *rc::gen::arbitrary<bool>()) group.lr_factor = *rc::gen::inRange(0, 100) / 7.0;
      if (!group.frozen && *rc::gen::arbitrary<bool>()) group.weight_decay = *rc::gen::inRange(0, 100) / 3.0;
      if (!group.frozen && *rc::gen::arbitrary<bool>()) group.muon = *rc::gen::arbitrary<bool>();
    }
    return groups;
  }
}
template <class T>
void randomise(const Key& key, T& out) {
  out = any_value<T>(key);
}
template <class T>
void randomise(const Key& key, std::optional<T>& out) {
  out.reset();
  if (*rc::gen::arbitrary<bool>()) out = any_value<T>(key);
}

RC_GTEST_PROP(JobFile, PrintedJobsParseBackToTheSameJob, ()) {
  Job job;
  for (const auto& key : job_keys()) std::visit([&](auto member) { randomise(key, member(job)); }, key.field);
  const auto text = to_toml(job);
  const auto again = parse_job(text, "printed");
  for (const auto& key : job_keys()) RC_ASSERT(key.text(again) == key.text(job));
  RC_ASSERT(to_toml(again) == text);
}

}  // namespace
}  // namespace lockstep::trainer
