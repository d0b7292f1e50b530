// `spillway zones | hold | resume`: the state of the zones, and the manual brake.
#include "api/codec/codec.h"
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/controller/controller_pages.h"
#include "apps/process/process.h"
#include "apps/process/terminal.h"
#include "apps/view/cluster_view.h"
#include "apps/view/controller_client.h"
#include "apps/view/remote.h"
#include "cli/text/zone_table.h"
#include "client/api_client.h"
#include "controllers/nodes/manual_hold.h"
#include "policy/lifecycle/zone.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <set>
#include <string>
#include <utility>

namespace spillway::apps {

namespace {

/// A conflict means a concurrent change: the update is retried with the present object.
constexpr int kAttempts = 5;

class Holder {
 public:
  /// `server`: the address of the API server, for the answer.
  Holder(ClusterView& cluster, std::string server, const cli::HoldCommand& command, std::string ns, std::string name)
      : cluster_(cluster), server_(std::move(server)), command_(command), ns_(std::move(ns)), name_(std::move(name)) {}

  Outcome run() {
    Outcome last;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      last = try_once();
      if (last || (last.error().code != ErrorCode::kConflict && last.error().code != ErrorCode::kAlreadyExists)) break;
    }
    return last;
  }

 private:
  /// Zones that have nodes; to resume, those that are held as well.
  Result<std::string> find_zone(const lifecycle::ManualHold& hold) {
    std::set<std::string> zones;
    auto nodes = cluster_.get(client::object_path("v1", "nodes", {}));
    if (!nodes) return nodes.error();
    const api::Json* items = nodes->find("items");
    if (items == nullptr || items->if_array() == nullptr) {
      return make_error(ErrorCode::kInternalError, "the list of nodes has no items");
    }
    for (const api::Json& item : *items->if_array()) {
      const auto node = api::decode<api::Node>(item);
      if (node) zones.insert(lifecycle::readable_zone(lifecycle::zone_key(node->metadata.labels)));
    }
    if (command_.act == cli::HoldCommand::Act::kResume) {
      for (const auto& [zone, why] : hold.zones) zones.insert(zone);
    }
    return controllers::find_zone(*command_.zone, zones);
  }

  Outcome try_once() {
    const std::string path = client::object_path("v1", "configmaps", ns_, name_);
    auto found = cluster_.get(path);
    if (!found && found.error().code != ErrorCode::kNotFound) return found.error();
    const bool holds = command_.act == cli::HoldCommand::Act::kHold;
    lifecycle::ManualHold hold;
    if (found) hold = controllers::manual_hold_of(*found);
    if (!holds && !found) {
      print_out("nothing is held on {}\n", server_);
      return {};
    }
    std::string zone;
    if (command_.zone) {
      SPILLWAY_TRY(meant, find_zone(hold));
      zone = meant;
      holds ? void(hold.zones[zone] = command_.why) : void(hold.zones.erase(zone));
    } else if (holds) {
      hold.everything = command_.why;
    } else {
      hold = {};
    }
    SPILLWAY_TRY_VOID(write(path, found ? &*found : nullptr, hold));
    print_out("{} {} on {}\n", command_.zone ? "zone " + controllers::zone_text(zone) : std::string("everything"),
              holds ? "is held" : "is resumed", server_);
    if (holds) print_out("The controllers follow within 5 seconds; `spillway zones` shows it then.\n");
    if (!holds && hold.everything) print_out("everything is still held: {}\n", *hold.everything);
    return {};
  }

  Outcome write(const std::string& path, const api::Json* found, const lifecycle::ManualHold& hold) {
    if (hold.empty()) return discard(cluster_.remove(path, *found));
    api::Json map = found != nullptr ? *found : api::Json::object({{"apiVersion", "v1"}, {"kind", "ConfigMap"}});
    map.make({"metadata", "name"}) = name_;
    map["data"] = controllers::manual_hold_data(hold);
    if (found != nullptr) return discard(cluster_.update(path, map));
    return discard(cluster_.create(client::object_path("v1", "configmaps", ns_), map));
  }

  static Outcome discard(const Result<api::Json>& answer) {
    if (!answer) return answer.error();
    return {};
  }

  ClusterView& cluster_;
  std::string server_;
  const cli::HoldCommand& command_;
  std::string ns_;
  std::string name_;
};

}  // namespace

int run_zones(const cli::ZonesCommand& command) {
  catch_interrupts();
  runtime::Loop loop;
  auto client = ControllerClient::create(loop, command.target);
  if (!client) {
    print_error(client.error());
    return cli::kExitUsage;
  }
  const auto zones = (*client)->get(std::string(kZonesPage));
  if (!zones) {
    print_error(zones.error());
    return cli::kExitFailure;
  }
  if (cli::is_document(command.output)) {
    print_answer(*zones, command.output);
    return cli::kExitOk;
  }
  const bool colour = shows_colour(command.colour, STDOUT_FILENO);
  write_stdout(cli::zone_table(*zones, colour ? cli::Paint::kTerminal : cli::Paint::kNone, width_of(command.output)));
  return cli::kExitOk;
}

int run_hold(const cli::HoldCommand& command) {
  const auto refuse = [](const Error& error) {
    print_error(error);
    return cli::kExitUsage;
  };
  const std::size_t slash = command.config_map.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == command.config_map.size()) {
    return refuse(invalid("--hold-config-map", "expected NAMESPACE/NAME, got \"{}\"", command.config_map));
  }
  if (command.zone && (command.zone->empty() || command.zone->contains(' '))) {
    return refuse(invalid("--zone", "expected a name that `spillway zones` prints, got \"{}\"", *command.zone));
  }
  if (command.why.contains('\n')) return refuse(invalid("--why", "must be one line"));
  catch_interrupts();
  runtime::Loop loop;
  auto remote = connect_remote(loop, command.api);
  if (!remote) return refuse(remote.error());
  const std::string server = remote->host;
  ClusterView cluster(loop, std::move(remote->transport));
  Holder holder(cluster, server, command, command.config_map.substr(0, slash), command.config_map.substr(slash + 1));
  if (const Outcome done = holder.run(); !done) {
    print_error(done.error());
    return done.error().code == ErrorCode::kInvalid && done.error().at == "--zone" ? cli::kExitUsage
                                                                                   : cli::kExitFailure;
  }
  return cli::kExitOk;
}

}  // namespace spillway::apps
