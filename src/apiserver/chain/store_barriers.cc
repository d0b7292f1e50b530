#include "apiserver/chain/store_barriers.h"

#include "apiserver/chain/request_rights.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace spillway::apiserver {

namespace {

/// An answer that ends a write without storing, such as a conflict, is also based on the present state.
bool is_about_the_present(const Exchange& exchange) {
  const auto given = [&](std::string_view name) {
    const std::string* value = exchange.target.find(name);
    return value != nullptr && !value->empty();
  };
  const std::string& verb = exchange.asked.verb;
  // The query of a proxied request belongs to the proxied server, and its address must be the present one.
  if (exchange.asked.subresource == "proxy") return true;
  const bool reads = verb == "get" || verb == "list" || verb == "watch";
  return !reads || (!given("resourceVersion") && !given("continue"));
}

}  // namespace

bool StoreBarriers::wait(const Exchange& exchange, store::Completion<store::Revision> reached) {
  if (!core_.store.is_shared()) return false;
  Origin& own = origin_of(exchange);
  if (!own.is_main()) return wait_apart(exchange, own, std::move(reached));
  if (!is_about_the_present(exchange) && !rights_.is_refused(exchange)) return false;
  own.barrier(std::move(reached));
  return true;
}

/// The store of the requested resource; the main one if the request is for no object.
Origin& StoreBarriers::origin_of(const Exchange& exchange) const {
  const auto& route = exchange.read().route;
  const bool stored = route && route->resource != nullptr && route->resource->stored();
  return stored ? core_.cache.of(*route->resource).origin() : main();
}

/// A resource in a store of its own stays available while the main store is down; authorization then uses the cached
/// roles.
bool StoreBarriers::wait_apart(const Exchange& exchange, Origin& own, store::Completion<store::Revision> reached) {
  const bool refused = rights_.is_refused(exchange);
  const bool present = is_about_the_present(exchange);
  if (!refused && !present) return false;

  struct Wait {
    std::size_t open = 0;
    Result<store::Revision> result = store::Revision();
    store::Completion<store::Revision> reached;

    void end_one(const Result<store::Revision>& one, bool counts) {
      if (!one && counts && result) result = one.error();
      if (--open == 0) reached(result);
    }
  };

  const bool asks_main = refused || main().store().is_full() || !main().store().refusing();
  const auto wait =
      std::make_shared<Wait>(Wait{.open = (asks_main ? 1U : 0U) + (present ? 1U : 0U), .reached = std::move(reached)});
  const auto end_with = [&wait](bool counts) {
    return [wait, counts](const Result<store::Revision>& result) { wait->end_one(result, counts); };
  };
  if (asks_main) main().barrier(end_with(refused));
  if (present) own.barrier(end_with(true));
  return true;
}

}  // namespace spillway::apiserver
