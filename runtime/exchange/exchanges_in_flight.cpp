#include "runtime/exchange/exchanges_in_flight.h"

#include <chrono>

namespace lockstep {

ExchangesInFlight::ExchangesInFlight(World& world) : transport_(*world.transport()) {}

void ExchangesInFlight::begin(const std::shared_ptr<MessageExchange>& machine, bool announced) {
  if (announced) machine->announce();
  exchanges_.push_back(machine);
  machine->start();
}

void ExchangesInFlight::advance() {
  transport_.send_more();
  for (size_t k = 0; k < exchanges_.size(); ++k) exchanges_[k]->advance(std::span(exchanges_).first(k));
  std::erase_if(exchanges_, [](const auto& machine) { return machine->is_complete(); });
}

template <class Done>
void ExchangesInFlight::wait_until(const Done& done, MessageExchange& machine) {
  const auto start = std::chrono::steady_clock::now();
  for (advance(); !done(); advance()) machine.wait();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  waited_[static_cast<size_t>(machine.kind())] += spent.count();
}

void ExchangesInFlight::await(MessageExchange& machine) {
  machine.announce();
  wait_until([&] { return machine.is_complete(); }, machine);
}

void ExchangesInFlight::await_piece(MessageExchange& machine, size_t member) {
  advance();
  if (machine.has(member)) return;
  machine.announce();
  wait_until([&] { return machine.has(member); }, machine);
}

void ExchangesInFlight::await_sent(MessageExchange& machine) {
  wait_until([&] { return !transport_.is_sending(); }, machine);
}

}  // namespace lockstep
