// Checkpoints of torch.distributed.checkpoint, as torchtitan saves them: every element in its place on any mesh, and
// what is not whole, not the model's, or not in the folder is refused by its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/redistribution/gather.h"
#include "tests/support/message_of.h"
#include "tests/trainer/weights/torch_folder.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/identity/initial_weights.h"
#include "trainer/state/state_digest.h"
#include "trainer/step/training_run.h"
#include "trainer/weights/exchange/compare_weights.h"
#include "trainer/weights/exchange/exchange_weights.h"
#include "trainer/weights/exchange/open_weights.h"
#include "trainer/weights/model_sizes.h"
#include "trainer/weights/torch_checkpoint/saved_tensors.h"
#include "trainer/weights/torch_checkpoint/weights.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;
using testing::TorchFolder;

ModelSection small_llama() {
  ModelSection model;
  model.name = "llama3";
  model.width = 12, model.layers = 2, model.heads = 3, model.key_value_heads = 1, model.hidden = 20;
  model.vocabulary = 257;
  return with_all_sizes(model);
}

/// Another number in every element, which all types hold exactly.
at::Tensor numbers(const std::vector<int64_t>& sizes, int64_t first) {
  const auto count = c10::multiply_integers(sizes);
  return (at::arange(first, first + count, at::kFloat).remainder(251) - 125).reshape(sizes) / 64;
}

/// Of every weight another way to be cut, `prefix` before its name.
class SavedModel : public TorchFolder {
 public:
  explicit SavedModel(const std::string& prefix = "") {
    int64_t i = 0;
    for (const auto& [name, sizes] : stored_sizes(small_llama())) {
      values[name] = numbers(sizes, 37 * i);
      const auto saved = values[name].to(i % 3 == 2 ? at::kBFloat16 : i % 3 == 1 ? at::kHalf : at::kFloat);
      if (i % 2 == 1 && sizes.size() == 2)
        add(prefix + name, saved, quarters(sizes));  // and of ranks beyond the last row an empty part
      else
        add(prefix + name, saved, 1 + i % 5);
      ++i;
    }
    add("optimizer.state.norm.weight.exp_avg", numbers({12}, 0));
    add("optimizer.state.norm.weight.step", at::scalar_tensor(7.0F));
    write();
  }
  std::map<std::string, at::Tensor> values;

 private:
  /// Of two dimensions at once, as fully sharded tensor parallelism cuts.
  static std::vector<Box> quarters(const std::vector<int64_t>& sizes) {
    const int64_t rows = sizes[0] / 3, columns = sizes[1] / 2;
    return {{{0, 0}, {rows, columns}},
            {{0, columns}, {rows, sizes[1] - columns}},
            {{rows, 0}, {sizes[0] - rows, columns}},
            {{rows, columns}, {sizes[0] - rows, sizes[1] - columns}},
            {{sizes[0], 0}, {0, sizes[1]}}};
  }
};

Job job_of(const std::string& folder) {
  Job job;
  job.model = small_llama();
  job.training.seq_len = 6, job.training.local_batch_size = job.training.global_batch_size = 2;
  job.parallelism.data_parallel_shard_degree = 1;
  job.checkpoint.initial_load_path = folder;
  return job;
}

TEST(TorchCheckpoint, HasEveryElementInItsPlace) {
  for (const char* prefix : {"", "model."}) {
    const SavedModel folder(prefix);
    const auto model = small_llama();
    const auto source = open_weights(folder.path(), &model);
    ASSERT_EQ(source->sizes().size(), folder.values.size());
    for (const auto& [name, value] : folder.values) {
      EXPECT_TRUE(whole_tensor(*source, name).equal(value)) << name;
      const int64_t rows = value.size(0);
      EXPECT_TRUE(source->rows(name, rows / 4, rows / 2).equal(value.narrow(0, rows / 4, rows / 2))) << name;
    }
  }
}

TEST(TorchCheckpoint, BeginsARunOnAnyMesh) {
  const SavedModel folder;
  const auto job = job_of(folder.path());
  const TrainingRun alone(job, {.mesh = parse_mesh("tp=1")});
  for (const auto& entry : alone.state())
    if (entry.division.parts().size() == 1)
      EXPECT_TRUE(gather(entry.value).equal(folder.values.at(entry.division.parts()[0].name)));
  for (const char* mesh : {"tp=3", "dp_replicate=2", "dp_shard=2,tp=2"})
    EXPECT_EQ(state_digest(TrainingRun(job, {.mesh = parse_mesh(mesh)}).state()).text(),
              state_digest(alone.state()).text())
        << mesh;
}

/// They are a part of what the run is.
TEST(TorchCheckpoint, HasADigestOfAllItsFiles) {
  const SavedModel folder;
  const auto digest = weights_digest(folder.path());
  for (const char* file : {"/.metadata", "/__0_0.distcp"}) {
    folder.write();
    ASSERT_EQ(weights_digest(folder.path()), digest);
    std::fstream(folder.path() + file, std::ios::in | std::ios::out | std::ios::binary).put('?');
    EXPECT_NE(weights_digest(folder.path()), digest) << file;
  }
}

TEST(TorchCheckpoint, DoesNotLookAtWhatLiesBesideTheModel) {
  SavedModel folder;
  auto& parts = folder.tensors.at("optimizer.state.norm.weight.exp_avg").parts;
  parts[0].is_compressed = true, parts[0].file = "elsewhere";
  folder.write();
  const auto model = small_llama();
  EXPECT_TRUE(whole_tensor(*open_weights(folder.path(), &model), "norm.weight").equal(folder.values.at("norm.weight")));
}

TEST(TorchCheckpoint, IsImported) {
  const SavedModel folder;
  const TemporaryFolder work;
  const auto model = small_llama();
  import_weights(folder.path(), work.file("ours"), &model);
  const auto source = open_weights(work.file("ours"));
  for (const auto& [name, value] : folder.values) EXPECT_TRUE(whole_tensor(*source, name).equal(value)) << name;
  EXPECT_THAT(compare_weights(work.file("ours"), work.file("ours")), IsEmpty());
}

TEST(TorchCheckpoint, NeedsAJobThatHasItsModel) {
  const SavedModel folder;
  EXPECT_THAT(
      message_of<BadInput>([&] { open_weights(folder.path()); }),
      HasSubstr("is a checkpoint of PyTorch's, which does not say its model. Make one of Lockstep's of it, with a "
                "job that has the model: lockstep checkpoint import " +
                folder.path() + " FOLDER --job JOB.toml"));
  ModelSection gpt2;
  gpt2.name = "gpt2";
  EXPECT_THAT(message_of<BadInput>([&] { open_weights(folder.path(), &gpt2); }), HasSubstr("read for llama3 alone"));
}

/// Tensors that share a list of parts would take memory without end.
TEST(TorchCheckpoint, HasNoMorePartsThanItsFileDescribes) {
  constexpr auto kMetadata = "torch.distributed.checkpoint.metadata";
  testing::PickleWriter out;
  out.name(kMetadata, "ChunkStorageMetadata").raw(")\x81}(").text("offsets").size({0}).text("sizes").size({0});
  out.raw("ub").raw("q\x01").raw("](");
  for (int i = 0; i < 1000; ++i) out.raw("h\x01");
  out.raw("e").raw("q\x02").name(kMetadata, "Metadata").raw(")\x81}(").text("state_dict_metadata").raw("}(");
  for (int i = 0; i < 200; ++i) {
    out.text("layers." + std::to_string(i)).name(kMetadata, "TensorStorageMetadata").raw(")\x81}(");
    out.text("size").size({0}).text("properties").name(kMetadata, "TensorProperties");
    out.raw(")\x81(").name("torch", "float32").raw("tb").text("chunks").raw("h\x02").raw("ub");
  }
  const auto bytes = out.raw("u").text("storage_data").raw("}").raw("ub").finished();
  EXPECT_THAT(message_of<FileError>([&] { saved_tensors(bytes, "file", [](auto&) { return true; }); }),
              HasSubstr("is not described as PyTorch 2.11 does"));
}

struct Wrong {
  const char* name;
  void (*change)(TorchFolder&);
  const char* says;
};

TorchFolder::Tensor& embedding(TorchFolder& folder) { return folder.tensors.at("tok_embeddings.weight"); }

const Wrong kWrong[] = {
    {"missing", [](TorchFolder& folder) { folder.tensors.erase("norm.weight"); },
     "has no norm.weight, which the job's model has."},
    {"another_layer", [](TorchFolder& folder) { folder.add("layers.2.ffn_norm.weight", numbers({12}, 1)); },
     "holds layers.2.ffn_norm.weight, which the job's model has not."},
    {"other_sizes", [](TorchFolder& folder) { folder.add("norm.weight", numbers({13}, 1)); },
     "norm.weight has sizes [13], the job's model has [12]."},
    {"other_type", [](TorchFolder& folder) { folder.tensors.at("norm.weight").dtype = "float8_e4m3fn"; },
     "norm.weight is float8_e4m3fn; weights are float32, float16 or bfloat16."},
    {"outside", [](TorchFolder& folder) { embedding(folder).parts[0].file = "../__0_0.distcp"; },
     "tok_embeddings.weight lies in \"../__0_0.distcp\"; it must be in a .distcp file of this folder."},
    {"compressed", [](TorchFolder& folder) { embedding(folder).parts[0].is_compressed = true; },
     "tok_embeddings.weight is compressed. Save it without extensions."},
    {"a_part_is_missing", [](TorchFolder& folder) { embedding(folder).parts.pop_back(); },
     "tok_embeddings.weight has 3084 elements, its parts have 0. Its checkpoint is not whole."},
    {"a_part_is_there_twice",
     [](TorchFolder& folder) { embedding(folder).parts.push_back(embedding(folder).parts[0]); },
     "that no file is said to hold. Its checkpoint is not whole."},
    {"a_part_is_outside", [](TorchFolder& folder) { embedding(folder).parts.back().box.offset[0] += 1; },
     "outside its sizes [257, 12]. Its checkpoint is not whole."},
    {"parts_overlap",
     [](TorchFolder& folder) {
       folder.add("norm.weight", numbers({12}, 1), {{{0}, {6}}, {{4}, {6}}});
     },
     "norm.weight has parts from [0] and from [4] on that overlap."},
    {"elements_are_missing",
     [](TorchFolder& folder) {
       folder.add("norm.weight", numbers({12}, 1), {{{0}, {6}}, {{6}, {5}}});
     },
     "norm.weight has 12 elements, its parts have 11. Its checkpoint is not whole."},
    {"no_weights_file", [](TorchFolder& folder) { embedding(folder).parts[0].file = "weights.bin"; },
     "it must be in a .distcp file of this folder."},
    {"numbers_of_another_type",
     [](TorchFolder& folder) {
       folder.add("norm.weight", numbers({12}, 1).to(at::kLong));
       folder.tensors.at("norm.weight").dtype = "float32";
     },
     "holds no tensor of the type and the sizes that .metadata gives it"},
    {"another_file", [](TorchFolder& folder) { embedding(folder).parts[0].file = "__1_0.distcp"; }, "__1_0.distcp"},
    {"cut_short", [](TorchFolder& folder) { embedding(folder).parts[0].offset = 1 << 30; }, "It is cut short."},
    {"another_place", [](TorchFolder& folder) { embedding(folder).parts[0].offset += 8; }, "cannot be read"},
    {"another_tensor",
     [](TorchFolder& folder) {
       const auto other = folder.tensors.at("norm.weight").parts[0];
       embedding(folder).parts[0].offset = other.offset, embedding(folder).parts[0].length = other.length;
     },
     "holds no tensor of the type and the sizes that .metadata gives it"},
};

class WrongTorchCheckpoint : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongTorchCheckpoint, IsNamed) {
  SavedModel folder;
  GetParam().change(folder);
  folder.write();
  const auto model = small_llama();
  const auto read = [&] {
    const auto source = open_weights(folder.path(), &model);
    for (const auto& [name, sizes] : source->sizes()) whole_tensor(*source, name);
  };
  const auto message = message_of<Error>(read);
  EXPECT_THAT(message, HasSubstr(GetParam().says));
  EXPECT_THAT(message, HasSubstr(folder.path()));
}

INSTANTIATE_TEST_SUITE_P(All, WrongTorchCheckpoint, ::testing::ValuesIn(kWrong),
                         [](const auto& info) { return std::string(info.param.name); });

/// Whatever byte of .metadata is another one, or the last: an error, or what can be read.
TEST(TorchCheckpoint, DamageEndsInAnErrorOrInTensorsThatAreWhole) {
  const SavedModel folder;
  const auto whole = folder.metadata();
  const auto model = small_llama();
  int refused = 0;
  for (size_t i = 0; i < whole.size(); i += 41) {
    auto changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    for (const auto& bytes : {changed, whole.substr(0, i)}) {
      std::ofstream(folder.path() + "/.metadata", std::ios::binary) << bytes;
      const auto message = message_of<Error>([&] {
        const auto source = open_weights(folder.path(), &model);
        for (const auto& [name, sizes] : source->sizes()) ASSERT_EQ(whole_tensor(*source, name).sizes(), sizes);
      });
      refused += message != "no such error";
    }
  }
  EXPECT_GT(refused, static_cast<int>(whole.size() / 41));
}

}  // namespace
}  // namespace lockstep::trainer
