// The page that shows a cluster to people, as files below …/ui/: the page, its script, its style sheet, and a document
// that describes its server. It contains no data of a cluster. Thread: any (pure).
#pragma once

#include "api/exchange/exchange.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

/// Facts about the server that are written into the page.
struct DashboardDoor {
  std::string version;   // version of this program
  std::string through;   // "dashboard" or "apiserver"
  bool what_if = false;  // allows what-if simulations
  std::string server;    // name of the API server behind the page, "192.0.2.7:6443"; empty: this one
  /// The root of the files' paths, for a server that treats "/ui" and "/ui/" alike: "/ui/". Empty: the page's links are
  /// relative, and "/ui" leads to "/ui/".
  std::string root = {};
};

/// The answer to a GET of "/ui…"; nullopt: not one of these paths. The page may run scripts of its own origin only, and
/// send requests to no other.
std::optional<api::Response> dashboard_page(std::string_view path, const DashboardDoor& door);

}  // namespace spillway::wire
