#include "store/server_addresses.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::store {

ServerAddresses::ServerAddresses(Store& store, std::string_view name, std::string address, After after, Seen seen)
    : store_(store),
      key_(fmt::format("{}{}", kPrefix, name)),
      address_(std::move(address)),
      after_(std::move(after)),
      seen_(std::move(seen)) {}

/// Writes this server's address. A failed write needs no report: the store reports its own state, and the next round
/// writes again.
void ServerAddresses::write() {
  if (address_.empty()) return read();
  store_.write({.key = key_,
                .value = std::make_shared<const std::string>(address_),
                .expected = std::nullopt,
                .ttl = kGoneAfter},
               alive_.guard([this](const Result<WriteResult>&) {
                 if (!over_) read();
               }));
}

void ServerAddresses::read() {
  store_.range({.prefix = std::string(kPrefix), .start_after = {}, .limit = kAddressesMax, .at = {}},
               alive_.guard([this](const Result<RangeResult>& found) {
                 if (over_) return;
                 if (found) {
                   std::vector<std::string> addresses;
                   for (const Entry& entry : found->entries) addresses.push_back(*entry.value);
                   seen_(addresses);
                 }
                 later();
               }));
}

void ServerAddresses::later() {
  after_(kBeatEvery, alive_.guard([this] {
    if (!over_) write();
  }));
}

void ServerAddresses::release(std::function<void()> done) {
  if (std::exchange(over_, true) || address_.empty()) return done();
  store_.write({.key = key_, .value = nullptr, .expected = std::nullopt},
               [done = std::move(done)](const Result<WriteResult>&) { done(); });
}

}  // namespace spillway::store
