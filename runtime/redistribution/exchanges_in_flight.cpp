#include "runtime/exchanges_in_flight.h"

#include <chrono>

namespace lockstep {

void ExchangesInFlight::begin(const std::shared_ptr<ExchangeMachine>& machine, bool announced) {
  if (announced) machine->announce();
  machines_.push_back(machine);
  machine->start();
}

void ExchangesInFlight::advance() {
  transport_.send_more();
  for (size_t k = 0; k < machines_.size(); ++k) machines_[k]->advance(std::span(machines_).first(k));
  std::erase_if(machines_, [](const auto& machine) { return machine->is_complete(); });
}

template <class Done>
void ExchangesInFlight::wait_until(const Done& done, ExchangeMachine& machine) {
  const auto start = std::chrono::steady_clock::now();
  for (advance(); !done(); advance()) machine.wait();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  waited_[static_cast<size_t>(machine.kind())] += spent.count();
}

void ExchangesInFlight::await(ExchangeMachine& machine) {
  machine.announce();
  wait_until([&] { return machine.is_complete(); }, machine);
}

void ExchangesInFlight::await_sent(ExchangeMachine& machine) {
  wait_until([&] { return !transport_.is_sending(); }, machine);
}

}  // namespace lockstep
