// A run that is killed at any moment goes on, on the same mesh or another, in one process or two, and ends with the
// bits of one that was let alone. LOCKSTEP_KILLS says how often (8), LOCKSTEP_SOAK kills 300 times
// (docs/checkpoint.md).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"
#include "tests/tools/spawned.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

int kills_to_make() {
  if (const char* wanted = std::getenv("LOCKSTEP_KILLS")) return std::stoi(wanted);
  return std::getenv("LOCKSTEP_SOAK") ? 300 : 8;
}

uint32_t seed() {
  const char* wanted = std::getenv("LOCKSTEP_KILLS_SEED");
  return wanted ? static_cast<uint32_t>(std::stoul(wanted)) : std::random_device()();
}

class Kills : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("OMP_NUM_THREADS", "1", 0); }

  Words command(const Words& mesh, const Words& launch) const {
    Words words{LOCKSTEP_BINARY};
    words.insert(words.end(), launch.begin(), launch.end());
    for (const auto* word : {"train", "JOB", "-q", "--training.steps", "40", "--training.global_batch_size", "8",
                             "--checkpoint.enable", "--checkpoint.interval", "1", "--json", "RESULT"})
      words.emplace_back(word);
    std::replace(words.begin(), words.end(), std::string("JOB"), job_);
    std::replace(words.begin(), words.end(), std::string("RESULT"), folder_.file("result.json"));
    words.insert(words.end(), mesh.begin(), mesh.end());
    return words;
  }
  /// Of any mesh and any number of processes.
  Words drawn_command() {
    const std::string shard = "--parallelism.data_parallel_shard_degree",
                      tensor = "--parallelism.tensor_parallel_degree";
    const std::string replicas = "--parallelism.data_parallel_replicate_degree";
    const Words meshes[] = {{shard, "2"}, {shard, "1", tensor, "2"}, {shard, "1", replicas, "2"}, {shard, "1"}};
    const auto& mesh = meshes[draw(4)];
    const bool many = mesh.size() > 2 || mesh[1] == "2" ? draw(2) == 1 : false;
    auto words = command(mesh, many ? Words{"launch", "-n", "2"} : Words{});
    words.insert(words.end(), {"--checkpoint.async_mode", draw(2) == 1 ? "async" : "disabled"});
    return words;
  }
  size_t draw(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }

  /// When to kill: so long after the start, or so long after the run has saved something.
  struct Moment {
    bool after_a_save = false;
    std::chrono::milliseconds delay;
  };
  Moment drawn_moment(int kills) {
    const bool saved = kills % 4 > 0;  // a busy machine has saved nothing yet at any given time
    return {saved, std::chrono::milliseconds(saved ? draw(300) : 100 + draw(900))};
  }
  /// All processes, or of two ranks one.
  void kill_at(const Moment& moment, Spawned& program) {
    while (moment.after_a_save && !has_saved() && !program.wait(std::chrono::milliseconds(5))) continue;
    if (program.wait(moment.delay)) return;
    const auto ranks = children_of(program.id());
    if (ranks.size() < 2 || draw(2) == 0) return program.signal(SIGKILL);
    ::kill(ranks[draw(2)], SIGKILL);
    ++of_one_rank_;
  }
  /// What nobody would find if all were well: a folder of a step without an index.
  bool has_unfinished() const {
    std::error_code gone;
    for (const auto& step : std::filesystem::directory_iterator(folder_.file("out/checkpoint"), gone))
      if (step.is_directory(gone) && !std::filesystem::exists(step.path() / "index.json", gone)) return true;
    return false;
  }
  /// The newest checkpoint, every byte of it.
  lockstep::Run inspected() const {
    int64_t newest = 0;
    std::error_code gone;
    for (const auto& step : std::filesystem::directory_iterator(folder_.file("out/checkpoint"), gone))
      if (std::filesystem::exists(step.path() / "index.json", gone))
        newest = std::max<int64_t>(newest, std::stoll(step.path().filename().string().substr(5)));
    return run_lockstep("checkpoint inspect " + folder_.file("out/checkpoint/step-" + std::to_string(newest)));
  }
  bool has_saved() const {
    std::error_code gone;  // the run beside this prunes and renames
    for (const auto& step : std::filesystem::directory_iterator(folder_.file("out/checkpoint"), gone))
      if (std::filesystem::exists(step.path() / "index.json", gone)) return true;
    return false;
  }

  /// Starts it again while the ranks of a launcher that was killed are on their way out.
  int run(const Words& words, std::optional<Moment> killed_at) {
    for (int attempt = 0; attempt < 50; ++attempt) {
      const auto out = write_to(folder_.file("out.txt")), err = write_to(folder_.file("err.txt"));
      Spawned program(words, out, err);
      if (killed_at) kill_at(*killed_at, program);
      const int code = program.code(60);
      if (code != 2 || errors().find("another run") == std::string::npos) return code;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return 2;
  }
  std::string errors() const { return file_content(folder_.file("err.txt")); }
  std::string digest() const {
    return nlohmann::json::parse(file_content(folder_.file("result.json"))).at("state_digest");
  }
  void begin_anew() const { std::filesystem::remove_all(folder_.file("out")); }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
  uint32_t seed_ = seed();
  std::mt19937 random_{seed_};
  int of_one_rank_ = 0;
};

TEST_F(Kills, LoseNothingThatWasSaved) {
  ASSERT_EQ(run(command({}, {}), std::nullopt), 0) << errors();
  const auto expected = digest();
  begin_anew();
  int kills = 0, in_saves = 0, ends = 0, resumes = 0;
  const auto where = [&] { return fmt::format("seed {}, kill {}: {}", seed_, kills, errors()); };
  while (kills < kills_to_make()) {
    resumes += has_saved();
    const int code = run(drawn_command(), drawn_moment(kills));
    const bool is_killed = code == -SIGKILL || code == 4;  // 4: the launcher lost a rank
    ASSERT_TRUE(code == 0 || is_killed) << code << " " << where();
    if (is_killed) {
      ++kills, in_saves += has_unfinished();
      if (has_saved()) {
        const auto newest = inspected();
        ASSERT_EQ(newest.code, 0) << newest.err << where();
      }
      if (kills < kills_to_make() && draw(3) > 0) continue;
    }
    resumes += is_killed && has_saved();
    const int end = is_killed ? run(drawn_command(), std::nullopt) : 0;
    ASSERT_EQ(end, 0) << where();
    ASSERT_EQ(digest(), expected) << where();
    begin_anew();
    ++ends;
  }
  EXPECT_GE(resumes, kills / 2);
  if (kills >= 100) {
    EXPECT_GE(in_saves, kills / 10) << "or this proves little";
  }
  std::cout << kills << " kills, " << in_saves << " of them in a save, " << of_one_rank_ << " of one rank of two, "
            << resumes << " starts behind an earlier one, " << ends << " ends with equal bits (seed " << seed_ << ")\n";
}

}  // namespace
}  // namespace lockstep
