// A query for logs of the node itself: units of systemd's journal, or one file below /var/log, as `kubectl get --raw
// /api/v1/nodes/N/proxy/logs/?query=kubelet` sends it.
// Thread: any (pure). Source: Kubernetes docs, "System Logs", log query; vectors kubelet-surface/node_log_query.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

inline constexpr std::string_view kNodeLogFolder = "/var/log";

/// A time of a query: the moment, and how it was written, which the journal gets without its zone.
struct LogQueryTime {
  WallTime at;
  std::string written;  // RFC 3339
};

struct NodeLogQuery {
  std::vector<std::string> services;  // units
  std::vector<std::string> files;     // below kNodeLogFolder
  std::optional<LogQueryTime> since;
  std::optional<LogQueryTime> until;
  std::optional<std::int64_t> boot;  // boot to read: 0 is the present one, -1 the one before
  std::optional<std::int64_t> tail_lines;
  std::string pattern;

  bool has_options() const;
};

/// A query whose parts have not been checked against each other.
struct ParsedNodeLogQuery {
  std::optional<NodeLogQuery> query;  // absent: no parameter of a query, or errors
  std::vector<std::string> errors;    // in upstream's words: 400
};

ParsedNodeLogQuery parse_node_log_query(const api::Target& target);

/// Every rule that the query breaks, in upstream's words (406). `missing_file`: the system's error for a file below
/// kNodeLogFolder; nullopt: it can be read.
std::vector<std::string> node_log_query_errors(
    const NodeLogQuery& query, const std::function<std::optional<std::string>(const std::string& file)>& missing_file);

/// The arguments of journalctl for one unit, its own name first.
std::vector<std::string> journal_command(const NodeLogQuery& query, const std::string& service);

}  // namespace spillway::agent
