// The members of a KubeletConfiguration about static pods of an address.
// Thread: any (pure). Source: Kubernetes docs, "Create static Pods", "Kubelet Configuration (v1beta1)".
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "base/error.h"
#include "base/time.h"

#include <string>
#include <string_view>

namespace spillway::agent {

/// The value of a header in everything that is shown or logged, as upstream.
inline constexpr std::string_view kMaskedHeader = "<masked>";

struct ManifestUrlSettings {
  std::string server;  // "https://host:port"; empty: there is no address
  std::string target;  // path and query
  api::HeaderList headers;
  Duration period = seconds(20);  // from an answer to the next request
};

/// `effective`: checked, with defaults. kInvalid: an address that is not http:// or https://, a header that is no list
/// of strings or cannot be sent, a period that is not positive.
Result<ManifestUrlSettings> manifest_url_of(const api::Json& effective);

/// The configuration as it may be shown to users who may read it: values of headers are masked.
api::Json without_secrets(api::Json configuration);

}  // namespace spillway::agent
