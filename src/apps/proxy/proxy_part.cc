#include "apps/proxy/proxy_part.h"

#include "api/text/time_text.h"
#include "base/file.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>
#include <variant>

namespace spillway::apps {
namespace {

constexpr Duration kAddressesEvery = seconds(30);
constexpr std::string_view kPlaceName = "spillway-proxy";

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace

// An abstract socket: its name belongs to the network namespace whose rules are loaded, and ends with the process.
Result<ProxyPlace> ProxyPlace::take() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("proxy", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(kPlaceName, address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + kPlaceName.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    return ProxyPlace(std::move(socket));
  }
  if (errno != EADDRINUSE) return errno_error("proxy", errno);
  return make_error(ErrorCode::kConflict, "another spillway proxy serves this machine already: stop it first");
}

ProxyPart::ProxyPart(Process& process, ProxyPlace place, std::unique_ptr<proxy::ServiceProxy> engine,
                     std::unique_ptr<client::Transport> transport, RulesAtStop at_stop)
    : EnginePart(process.loop(), std::move(engine), std::move(transport)),
      process_(process),
      place_(std::move(place)),
      proxy_(static_cast<proxy::ServiceProxy&>(this->engine())),
      at_stop_(at_stop),
      loader_(process.loop()),
      health_checks_(process, [this, alive = alive_.ref()] {
        return !alive.expired() && proxy_.is_healthy(process_.loop().now().mono);
      }) {
  driver().after_step([this] { carry_out(); });
  observe_addresses();
}

void ProxyPart::observe_addresses() {
  loader_.read_addresses(alive_.guard([this](std::vector<std::string> addresses) {
    driver().step([this, addresses = std::move(addresses)](Now now) { proxy_.on_addresses(addresses, now); });
    process_.loop().at(process_.loop().now().mono + kAddressesEvery, alive_.guard([this] { observe_addresses(); }));
  }));
}

void ProxyPart::carry_out() {
  for (proxy::ProxyCommand& command : proxy_.take_proxy_commands()) {
    std::visit(Overloaded{[this](proxy::LoadRules& load) {
                            loader_.load(std::move(load.changes), [this, id = load.id](const Outcome& outcome) {
                              driver().step([this, id, outcome](Now now) { proxy_.on_loaded(id, outcome, now); });
                            });
                          },
                          [this](proxy::DeleteFlows& flows) {
                            loader_.delete_flows(std::move(flows.check), [this](const Result<std::size_t>& deleted) {
                              if (deleted) return;
                              process_.log().warning("UDP flows of removed endpoints could not be deleted",
                                                     {{"error", deleted.error().text()}});
                            });
                          },
                          [this](proxy::ServeHealthChecks& checks) { health_checks_.serve(checks.ports); }},
               command);
  }
}

api::Response ProxyPart::health_page(std::string_view path) const {
  if (path != "/healthz" && path != "/livez") return page_of(404, "404 page not found\n");
  const Now now = process_.loop().now();
  const bool healthy = proxy_.is_healthy(now.mono);
  const bool eligible = proxy_.is_node_eligible();
  const bool well = healthy && (eligible || path == "/livez");
  const auto updated = proxy_.last_loaded();
  const std::string node = path == "/livez" ? "" : fmt::format(",\"nodeEligible\": {}", eligible);
  return page_of(well ? 200 : 503,
                 fmt::format("{{\"lastUpdated\": \"{}\",\"currentTime\": \"{}\"{}}}",
                             updated ? api::format_time(*updated) : "", api::format_time(now.wall), node),
                 "application/json");
}

void ProxyPart::stop(runtime::Loop::Task done) {
  alive_.end();
  EnginePart::stop([] {});
  if (at_stop_ == RulesAtStop::kStay) return done();
  loader_.remove([this, done = std::make_shared<runtime::Loop::Task>(std::move(done))](const Outcome& removed) {
    if (!removed) process_.log().warning("packet rules could not be removed", {{"error", removed.error().text()}});
    (*done)();
  });
}

}  // namespace spillway::apps
