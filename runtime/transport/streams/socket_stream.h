#pragma once
#include "core/files/file_descriptor.h"
#include "runtime/transport/stream.h"

namespace lockstep {

/// A connected stream socket.
class SocketStream final : public Stream {
 public:
  explicit SocketStream(FileDescriptor socket);

  size_t send(ConstSpans from) override;
  size_t receive(MutableSpans to) override;
  bool can_receive() const override { return readable_; }
  bool can_send() const override { return writable_; }
  bool is_memory() const override { return false; }
  void look(bool to_receive, bool to_send) override;
  pollfd asleep(bool to_receive, bool to_send) override;
  void awake(short events) override;

 private:
  FileDescriptor socket_;
  bool readable_ = true, writable_ = true;  ///< false after a call that moved less than was asked for
};

}  // namespace lockstep
