#include "apiserver/chain/non_resource_paths.h"

#include "apiserver/access/authorizer.h"
#include "apiserver/flow/flow_control.h"
#include "apiserver/ports/future_simulator.h"
#include "apiserver/read/memory_account.h"
#include "apiserver/read/reader.h"
#include "apiserver/read/watch_hub.h"
#include "apiserver/request/pages.h"
#include "apiserver/resource/slice_queue.h"
#include "apiserver/serving/server_health.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr std::string_view kMemoryPage = "/debug/memory";
constexpr std::string_view kPlainText = "text/plain; charset=utf-8";

}  // namespace

void NonResourcePaths::perform(const ExchangePtr& exchange) {
  const std::string& path = exchange->asked.path;
  if (answer_own_page(exchange)) return;
  if (exchange->request().method == api::Method::kGet) {
    if (answer_page_of_process(*exchange) || begin_slow_page(exchange)) return;
    if (auto table = parts_.flows.page(path)) return exchange->answer(200, *std::move(table), kPlainText);
    if (path == kMemoryPage) return show_memory(exchange);
  }
  if (path == kWhatIfPath && exchange->request().method == api::Method::kPost && options_.futures != nullptr) {
    return simulate(exchange);
  }
  exchange->answer(404, "404 page not found\n", kPlainText);
}

bool NonResourcePaths::answer_own_page(const ExchangePtr& exchange) {
  if (exchange->asked.path == "/metrics") parts_.flows.show();
  if (!is_health_page(exchange->target)) return parts_.pages.answer(exchange, {});
  return parts_.pages.answer(exchange, parts_.health.checks());
}

bool NonResourcePaths::answer_page_of_process(Exchange& exchange) {
  if (!options_.pages) return false;
  auto page = options_.pages(exchange.asked.path);
  if (!page) return false;
  const std::string type(page->header("Content-Type"));
  std::erase_if(page->headers, [](const auto& header) { return header.first == "Content-Type"; });
  exchange.answer(page->status, std::move(page->body), type, std::move(page->headers));
  return true;
}

/// Starts a page that answers later. False: the path is not one of them.
bool NonResourcePaths::begin_slow_page(const ExchangePtr& exchange) {
  if (!options_.slow_pages) return false;
  return options_.slow_pages(
      exchange->asked.path, [&core = parts_.core, waiting = std::weak_ptr(exchange)](api::Response answer) {
        const ExchangePtr alive = waiting.lock();
        if (alive == nullptr) return;  // the client has gone, or this server has ended
        core.catch_up();
        const std::string type(answer.header("Content-Type"));
        alive->answer(answer.status, std::move(answer.body), type, {{"X-Content-Type-Options", "nosniff"}});
      });
}

/// Answers with the memory of this process by owner, once all objects have been counted.
void NonResourcePaths::show_memory(const ExchangePtr& exchange) {
  parts_.slices.add([this, exchange, account = MemoryAccount(parts_.core.cache)](SliceBudget& budget) mutable {
    if (exchange->finished()) return true;
    if (!account.step(budget)) return false;
    telemetry::MemoryRows rows = account.rows();
    rows.push_back({"lists: items in protobuf", parts_.reader.items().size(), parts_.reader.items().bytes()});
    rows.push_back({"watches", parts_.hub.open_count(), parts_.hub.heap_bytes()});
    if (options_.memory) std::ranges::move(options_.memory(), std::back_inserter(rows));
    exchange->answer(200, telemetry::memory_table(rows), kPlainText, {{"X-Content-Type-Options", "nosniff"}});
    return true;
  });
}

/// Runs a what-if request in the simulator. The request's seat is released meanwhile: the simulator has limits of its
/// own.
void NonResourcePaths::simulate(const ExchangePtr& exchange) {
  const std::uint64_t id = exchange->id();
  exchange->wait_for_others([this, id] { options_.futures->abandon(id); });
  exchange->release_seats();
  options_.futures->simulate(id, exchange->request(), exchange->shared_user(), [this, exchange](api::Response answer) {
    parts_.core.catch_up();
    const std::string type(answer.header("Content-Type"));
    exchange->answer(answer.status, std::move(answer.body), type, {{"X-Content-Type-Options", "nosniff"}});
  });
}

}  // namespace spillway::apiserver
