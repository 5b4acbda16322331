#pragma once
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::trainer {

/// One number of a step, under a name that TensorBoard draws a curve of: "loss_metrics/global_avg_loss".
struct ScalarEvent {
  std::string_view tag;
  double value;  ///< kept as a float
};

/// A file of events as TensorBoard reads them: records of TensorFlow's TFRecord format (length, data, both with masked
/// CRC-32C: tensorflow/core/lib/io/record_writer.h), each a protocol buffer of the type Event
/// (tensorflow/core/util/event.proto).
class EventFile {
 public:
  /// Creates `folder`, and in it a new file "events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER". TensorBoard
  /// forgets what older files of the folder have from `first_step` on: all of a run that begins anew, what a run that
  /// goes on takes again. FileError.
  EventFile(const std::string& folder, int64_t first_step);

  /// All in one event, in one write. `wall_time`: seconds since 1970. FileError when it cannot be written.
  void append(int64_t step, double wall_time, std::span<const ScalarEvent> scalars);

  const std::string& path() const { return path_; }

 private:
  void write(std::string_view event);

  std::string path_;
  std::ofstream file_;
};

/// Seconds since 1970.
double wall_time();

/// The record of these bytes: what a TFRecord file is made of.
std::string event_record(std::string_view data);

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4), not masked.
uint32_t crc32c(std::string_view data);

}  // namespace lockstep::trainer
