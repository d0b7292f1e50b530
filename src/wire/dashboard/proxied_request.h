// The requests that the page of `spillway dashboard` may send to the API server with the credentials of the user who
// started it: a list of reads, the writes of hold and resume, and the review of the user's own rights. The forwarded
// request is built from the checked values, never from the received text. Thread: any (pure).
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "base/error.h"

#include <string_view>

namespace spillway::wire {

/// The ConfigMap by which the lifecycle controllers are held (controllers/nodes/manual_hold.h).
inline constexpr std::string_view kHoldNamespace = "kube-system";
inline constexpr std::string_view kHoldName = "spillway-hold";

struct ProxiedRequest {
  api::Request request;
  bool watches = false;  // the answer is a stream without an end of its own
};

/// `asked.target` without what leads to the dashboard: "/api/v1/nodes?watch=1". kForbidden: the page needs no such
/// request; kBadRequest: the target or the body is malformed.
Result<ProxiedRequest> check_proxied(const api::Request& asked);

/// True if this value of a Host header names the server that listens on `address` and `port`. Another name may resolve
/// to this machine as well: that of a hostile page (DNS rebinding). A browser sends the port unless it is 80.
bool is_own_host(std::string_view host, std::string_view address, std::uint16_t port);

/// True if the request was sent by a page of another origin, as far as a browser reports it. `scheme`: of this server's
/// own.
bool is_cross_origin(const api::Request& request, std::string_view scheme = "http");

/// The question of a POST to …/ui/what-if, which no page of another origin can put: kForbidden, or a body of a type
/// that a form cannot have, kBadRequest. kRequestEntityTooLarge: longer than any question.
Result<api::Json> read_what_if(const api::Request& asked, std::string_view scheme);

/// The rest of a target behind "/TOKEN"; empty: it does not begin so. Takes as long for any wrong token.
std::string_view behind_token(std::string_view target, std::string_view token);

}  // namespace spillway::wire
