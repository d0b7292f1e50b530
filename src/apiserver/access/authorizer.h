// Authorizes requests. Thread: loop. Source: spec "API server contract", 19.1, 19.4.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "apiserver/request/route.h"

#include <string>
#include <string_view>

namespace spillway::apiserver {

struct Verdict {
  bool allowed = false;
  std::string reason;
};

class Authorizer {
 public:
  virtual ~Authorizer() = default;
  virtual Verdict authorize(const api::UserInfo& user, const RequestAttributes& request) const = 0;
};

/// The 403 for the refused request, in Kubernetes' words.
api::Status refusal_status(const api::UserInfo& user, const RequestAttributes& asked, const Verdict& verdict);

bool in_group(const api::UserInfo& user, std::string_view group);
/// Paths whose answers reveal nothing about the content of the cluster.
bool is_public_path(std::string_view path);
/// The path of what-if simulations from the dashboard: not a file, and POST only for users with that right.
inline constexpr std::string_view kWhatIfPath = "/ui/what-if";
/// The dashboard's files, which hold nothing of the cluster either: for all authenticated users.
bool is_dashboard_path(std::string_view path);

}  // namespace spillway::apiserver
