#pragma once
#include <limits>
#include <string_view>

#include "core/error.h"
#include "replay/format/payload_mode.h"
#include "trainer/job/job_keys.h"
#include "trainer/job/mesh_degrees.h"
#include "trainer/job/offered_names.h"

/// What keys of a job accept: for the tables alone (job_keys.cpp, model_keys.cpp).
namespace lockstep::trainer {

/// The member of a section, and of a section in it.
template <auto kSection, auto kMember>
constexpr auto at() {
  return +[](Job & job) -> auto& { return (job.*kSection).*kMember; };
}
template <auto kSection, auto kInner, auto kMember>
constexpr auto at() {
  return +[](Job & job) -> auto& { return ((job.*kSection).*kInner).*kMember; };
}

inline constexpr Allowed kAnything{};
inline constexpr double kHuge = std::numeric_limits<double>::max();
inline constexpr Allowed kAtLeast0{"at least 0", [](double x) { return x >= 0 && x <= kHuge; }};
inline constexpr Allowed kAtLeast1{"at least 1", [](double x) { return x >= 1; }};
inline constexpr Allowed kLevels{"from 0 to 6", [](double x) { return x >= 0 && x <= 6; }};
inline constexpr Allowed kMebibytes{"from 0 to 1048576", [](double x) { return x >= 0 && x <= 1 << 20; }};
inline constexpr Allowed kRank{"from 0 to 65536", [](double x) { return x >= 0 && x <= 65536; }};
inline constexpr Allowed kTimeout{"from 1 to 1000000", [](double x) { return x >= 1 && x <= 1e6; }};
inline constexpr Allowed kAboveZero{"above 0", [](double x) { return x > 0 && x <= kHuge; }};
inline constexpr Allowed kFactor{"at least 1", [](double x) { return x >= 1 && x <= kHuge; }};
inline constexpr Allowed kNorm{"at least 1e-30", [](double x) { return x >= 1e-30; }};
inline constexpr Allowed kFraction{"in [0, 1]", [](double x) { return x >= 0 && x <= 1; }};
inline constexpr Allowed kBelowOne{"in [0, 1)", [](double x) { return x >= 0 && x < 1; }};
// Limits that keep every product of sizes inside 64 bits.
inline constexpr double kMaxDegree = 65536;
inline constexpr double kMaxBatch = 1 << 30;
inline constexpr Allowed kDegree{"from 1 to 65536", [](double x) { return x >= 1 && x <= kMaxDegree; }};
inline constexpr Allowed kOpenDegree{"-1 or from 1 to 65536",
                                     [](double x) { return (x >= 1 && x <= kMaxDegree) || (x > -2 && x < 0); }};
inline constexpr Allowed kBatch{"from 1 to 1073741824", [](double x) { return x >= 1 && x <= kMaxBatch; }};
inline constexpr Allowed kOpenBatch{"-1 or from 1 to 1073741824",
                                    [](double x) { return (x >= 1 && x <= kMaxBatch) || (x > -2 && x < 0); }};
inline constexpr Allowed kOpenCount{"-1 or at least 1", [](double x) { return x >= 1 || (x > -2 && x < 0); }};
inline constexpr Allowed kOpenIndex{"-1 or at least 0", [](double x) { return x > -2; }};
inline constexpr Allowed kNotEmpty{"a name", nullptr, [](std::string_view s) { return !s.empty(); }};

// Limits that keep a model's number of elements inside 64 bits.
inline constexpr Allowed kModelSize{"from 1 to 1048576", [](double x) { return x >= 1 && x <= 1 << 20; }};
inline constexpr Allowed kLayers{"from 1 to 4096", [](double x) { return x >= 1 && x <= 4096; }};
inline constexpr Allowed kModelSizeOr0{"from 0 to 1048576", [](double x) { return x >= 0 && x <= 1 << 20; }};
inline constexpr Allowed kLayersOr0{"from 0 to 4096", [](double x) { return x >= 0 && x <= 4096; }};
inline constexpr Allowed kSmallCount{"from 0 to 64", [](double x) { return x >= 0 && x <= 64; }};
inline constexpr Allowed kVocabulary{"from 1 to 16777216", [](double x) { return x >= 1 && x <= 1 << 24; }};

inline constexpr bool is_rotated_block(double x) {
  for (int64_t size = 2; size <= 32768; size *= 2)
    if (static_cast<double>(size) <= x && x <= static_cast<double>(size)) return true;
  return x >= 0 && x <= 0;
}
inline constexpr Allowed kRotatedBlock{"0 or a power of two from 2 to 32768", is_rotated_block};

inline bool is_job_key(std::string_view name) { return find_job_key(name) != nullptr; }
inline constexpr Allowed kJobKeys{"names of keys such as \"optimizer.lr\"", nullptr, is_job_key};

inline bool is_digest(std::string_view text) {
  return text.empty() || (text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos);
}
inline constexpr Allowed kDigest{"empty or 32 hexadecimal digits", nullptr, is_digest};

inline bool is_mesh_list(std::string_view text) try {
  return text.empty() || !parse_meshes(text).empty();
} catch (const BadInput&) {
  return false;
}
inline constexpr Allowed kMeshes{
    "empty or meshes of pp, dp_replicate, dp_shard, cp, tp, ep and etp such as \"tp=2; dp_shard=2,tp=2\"", nullptr,
    is_mesh_list};

inline bool is_load_balancer(std::string_view text) { return text.empty() || text == kHeadTail; }
inline constexpr Allowed kLoadBalancer{"empty or headtail", nullptr, is_load_balancer};

inline constexpr Allowed one_of(Choices choices) { return {{}, nullptr, nullptr, choices}; }
inline constexpr Choice kComputeTypes[] = {{"float32"}, {"bfloat16"}};
inline constexpr Choice kFloat32[] = {{"float32"}};
inline constexpr Choice kDevices[] = {{"cpu"}, {"cuda"}};
inline constexpr Choice kReshard[] = {{"default"}, {"always"}, {"never"}};
inline constexpr Choice kRotateMethods[] = {{"allgather"}, {kRing}, {kUlysses}};
inline constexpr Choice kAsyncModes[] = {{"disabled"}, {"async"}};
inline constexpr Choice kRecompute[] = {{"none"}, {"full"}, {"selective"}, {"memory_budget"}};
inline constexpr Choice kVerifyModes[] = {{kStepMode}, {kOpsMode}, {kReplicasMode}};
inline constexpr Choice kTransports[] = {{"auto"}, {"shared_memory"}, {"tcp"}, {"gloo"}};
inline constexpr Allowed kPayload{"all, none or ring:K with K from 1", nullptr, replay::is_payload_mode};

inline constexpr bool is_selective_option(std::string_view text) {
  return text == kChoosesOps || text == kKeepsMaps ||
         (!text.empty() && text.size() <= 9 && text[0] != '0' && text.find_first_not_of("0123456789") == text.npos);
}
inline constexpr Allowed kSelectiveOption{"op, linear or a layer period such as \"2\"", nullptr, is_selective_option};

}  // namespace lockstep::trainer
