#include "trainer/launch/signed_store.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "core/error.h"
#include "runtime/transport/rendezvous/handshake.h"
#include "trainer/launch/within.h"

namespace lockstep::trainer {
namespace {

constexpr size_t kMostBytes = size_t{1} << 16;

}  // namespace

SignedStore::SignedStore(Store store, std::string token, std::string prefix, std::chrono::milliseconds timeout,
                         std::string waiting)
    : store_(std::move(store)),
      token_(std::move(token)),
      prefix_(std::move(prefix)),
      waiting_(std::move(waiting)),
      timeout_(timeout) {}

std::string SignedStore::signature(const std::string& key, const std::string& text) const {
  return sign(token_, prefix_ + key + " " + text);
}

void SignedStore::set(const std::string& key, const std::string& text) const {
  const auto signed_text = text + " " + signature(key, text);
  LOCKSTEP_CHECK(signed_text.size() <= kMostBytes, "{} has {} bytes", key, signed_text.size());
  within(timeout_, waiting_, [store = store_, name = prefix_ + key, signed_text] { store->set(name, signed_text); });
}

std::string SignedStore::get(const std::string& key, std::chrono::milliseconds most) const {
  const auto bytes =
      within(std::min(most, timeout_), waiting_, [store = store_, name = prefix_ + key] { return store->get(name); });
  const std::string value(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(std::min(bytes.size(), kMostBytes)));
  const auto end = std::min(value.rfind(' '), value.size());
  auto text = value.substr(0, end);
  const auto expected = signature(key, text);
  const auto given = std::string_view(value).substr(std::min(end + 1, value.size()));
  if (bytes.size() > kMostBytes || !equal(std::as_bytes(std::span(given)), std::as_bytes(std::span(expected))))
    fail<TransportError>("the store's {} is not signed with this job's token", key);
  return text;
}

std::optional<std::string> SignedStore::find(const std::string& key) const {
  const bool is_set =
      within(timeout_, waiting_, [store = store_, name = prefix_ + key] { return store->check({name}); });
  return is_set ? std::optional(get(key)) : std::nullopt;
}

SignedStore::Store SignedStore::unsigned_part(const std::string& name) const {
  return c10::make_intrusive<c10d::PrefixStore>(prefix_ + name, store_);
}

}  // namespace lockstep::trainer
