#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/format/columns.h"

/// Which datasets a step's file has, besides those of the state, and the limits of FORMAT.md.
namespace lockstep::replay {

inline constexpr const char* kFormat = "lockstep-recording";
inline constexpr int64_t kVersion = 4;

inline constexpr std::size_t kMaxName = 1024;       ///< bytes of a name
inline constexpr std::size_t kMaxText = 64 * 1024;  ///< bytes of `/reason`, `/job` and `/machine`
inline constexpr std::size_t kMaxRows = std::size_t{1} << 27;
inline constexpr std::size_t kMaxDimensions = 32;  ///< HDF5's own limit

enum class Content : uint8_t {
  kText,     ///< a scalar string
  kSamples,  ///< int32 [rows, seq_len]
  kNames,    ///< strings of one length [n]
  kTable,    ///< compounds [n]
  kBytes,    ///< uint8 [n]
  kTensor,   ///< of the state: its attribute `dtype` tells
};

/// A dataset that every file has.
struct Dataset {
  const char* path;
  Content content;
  const std::span<const Column>* columns = nullptr;
};

enum : std::size_t {
  kReason,
  kJob,
  kMachine,
  kTokens,
  kLabels,
  kPositions,
  kScalarTable,
  kNameTable,
  kOpTable,
  kResultTable,
  kCollectiveTable,
  kPieceTable,
  kPayload,
};

inline constexpr std::array kDatasets = {
    Dataset{"/reason", Content::kText},
    Dataset{"/job", Content::kText},
    Dataset{"/machine", Content::kText},
    Dataset{"/batch/tokens", Content::kSamples},
    Dataset{"/batch/labels", Content::kSamples},
    Dataset{"/batch/positions", Content::kSamples},
    Dataset{"/scalars", Content::kTable, &kScalarColumns},
    Dataset{"/names", Content::kNames},
    Dataset{"/ops", Content::kTable, &kOpColumns},
    Dataset{"/results", Content::kTable, &kResultColumns},
    Dataset{"/collectives", Content::kTable, &kCollectiveColumns},
    Dataset{"/pieces", Content::kTable, &kPieceColumns},
    Dataset{"/payload", Content::kBytes},
};

}  // namespace lockstep::replay
