#pragma once
#include "runtime/transport/transport.h"

namespace lockstep {

/// A transport that leaves everything to another one: derive from it to change something.
class TransportWrapper : public Transport {
 public:
  explicit TransportWrapper(std::shared_ptr<Transport> inner) : inner_(std::move(inner)) {}

  void post(Message message) override { inner_->post(std::move(message)); }
  std::optional<MessageHeader> arrived(int source, int destination) override {
    return inner_->arrived(source, destination);
  }
  bool receive(int source, int destination, std::span<const MutableSpan> parts) override {
    return inner_->receive(source, destination, parts);
  }
  std::optional<BorrowedPayload> borrow(int source, int destination) override {
    return inner_->borrow(source, destination);
  }
  void settle() override { inner_->settle(); }
  void progress() override { inner_->progress(); }
  void send_more() override { inner_->send_more(); }
  bool is_sending() const override { return inner_->is_sending(); }
  bool delivers_what_is_awaited() const override { return inner_->delivers_what_is_awaited(); }
  void set_timeout(std::chrono::milliseconds timeout) override { inner_->set_timeout(timeout); }
  void say_last(std::string_view why) override { inner_->say_last(why); }
  FlightRecorder* recorder() const override { return inner_->recorder(); }

 protected:
  const std::shared_ptr<Transport> inner_;
};

}  // namespace lockstep
