// The request of an httpGet probe or hook, and the outcome that its answer means.
// Thread: any (pure). Source: Kubernetes docs, "Liveness, Readiness and Startup Probes"; spec "Pod lifecycle", 9.5,
// 9.7; vectors pod-lifecycle/http_probe.
#pragma once

#include "api/object/probe.h"
#include "base/error.h"
#include "policy/containers/probe_run.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::containers {

enum class HttpPurpose { kProbe, kLifecycle };

struct HttpAsk {
  bool tls = false;
  std::string host;  // an address or name, without brackets
  std::uint16_t port = 0;
  std::string target;                                        // path and query for the request line; empty: "/"
  std::string fragment;                                      // never sent
  std::vector<std::pair<std::string, std::string>> headers;  // canonical names, sorted; "Host" is in the request line

  std::string url() const;

  friend bool operator==(const HttpAsk&, const HttpAsk&) = default;
};

/// A number, or the name of a port of this container. kInvalid: neither, or no port.
Result<std::uint16_t> port_of(std::string_view port, const api::Container& container);

/// The request of an HTTP action. `pod_ip`: used if the action names no host.
Result<HttpAsk> http_ask_of(const api::HttpGetAction& action, const api::Container& container, std::string_view pod_ip,
                            HttpPurpose purpose);

struct HttpAnswer {
  int status = 0;
  std::string location;  // the header of a redirect
  std::string body;      // the beginning of the body
};

/// The next request of a redirect: within the same host name redirects are followed. nullopt: none.
std::optional<HttpAsk> follow(const HttpAsk& ask, const HttpAnswer& answer);

/// The end of an error about a server that was called by HTTPS and has answered by HTTP.
inline constexpr std::string_view kHttpForHttps = "http: server gave HTTP response to HTTPS client";

inline constexpr int kRedirectsMax = 10;               // as Go's client: one more redirect fails the probe
inline constexpr std::size_t kProbeOutputMax = 10240;  // as upstream; the rest of the body is cut

struct ProbeVerdict {
  ProbeOutcome outcome = ProbeOutcome::kError;
  std::string output;

  friend bool operator==(const ProbeVerdict&, const ProbeVerdict&) = default;
};

ProbeVerdict evaluate_http(const HttpAnswer& answer);

}  // namespace spillway::containers
