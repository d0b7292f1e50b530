// One event of the audit log, and its line: JSON, its members in upstream's order. Nothing that a client sends can end
// a line or pass for a member: what is no UTF-8 is replaced, control characters are escaped, and what has no bound of
// its own is cut.
// Thread: any (pure). Source: audit.k8s.io/v1 Event; spec "API server contract", 21.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "apiserver/audit/policy.h"
#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

// The lengths at which texts are cut; "...TRUNCATED" follows a text that is longer.
inline constexpr std::size_t kAuditUserAgentMax = 1'024;  // as upstream
inline constexpr std::size_t kAuditUriMax = 8'192;
inline constexpr std::size_t kAuditNameMax = 1'024;     // names of users, groups, objects, annotations
inline constexpr std::size_t kAuditMessageMax = 4'096;  // message of a status
inline constexpr std::size_t kAuditListMax = 100;       // elements of a list: groups, values of one extra, addresses

/// The annotation of an event whose objects were left out because it was too long.
inline constexpr std::string_view kTruncatedAnnotation = "audit.k8s.io/truncated";

struct AuditObject {
  std::string resource;
  std::string ns;
  std::string name;
  std::string uid;
  std::string group;
  std::string version;
  std::string resource_version;
  std::string subresource;
};

struct AuditStatus {
  std::optional<int> code;  // nullopt: none was sent
  std::string status = {};  // "Failure"
  std::string message = {};
  std::string reason = {};
  std::optional<api::Json> details = {};
};

struct AuditEvent {
  AuditLevel level = AuditLevel::kMetadata;
  AuditStage stage = AuditStage::kRequestReceived;
  std::string audit_id;
  std::string uri;
  std::string verb;
  api::UserInfo user;                              // without a name: not authenticated
  std::optional<api::UserInfo> impersonated = {};  // the impersonated user
  std::vector<std::string> source_ips = {};
  std::string user_agent = {};
  std::optional<AuditObject> object = {};
  std::optional<AuditStatus> status = {};
  std::string request_object = {};   // JSON; empty: none
  std::string response_object = {};  // JSON; empty: none
  WallTime received{};
  WallTime at{};
  std::map<std::string, std::string, std::less<>> annotations = {};
};

/// The line, without its newline. An event that is longer than `bytes_max` loses its objects, which an annotation
/// records; nullopt: it is too long even so.
std::optional<std::string> audit_line(AuditEvent event, std::size_t bytes_max);

/// The line that records that `lost` events are missing before it.
std::string audit_loss_line(std::uint64_t lost, WallTime at);

/// The source addresses of a request: those in headers of proxies, then the connection's own. All but the last one are
/// unverified.
std::vector<std::string> source_addresses(const api::Request& request);

}  // namespace spillway::apiserver
