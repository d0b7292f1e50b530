// The files of a configMap, secret, downwardAPI or projected volume, and what they are made from.
// Thread: any (pure). Source: Kubernetes docs, "Volumes", "Projected Volumes"; spec "Pod lifecycle", 7.5.
#pragma once

#include "agent/contract/volume_ports.h"
#include "agent/volumes/data_objects.h"
#include "api/object/pod.h"
#include "base/error.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace spillway::agent {

/// A token of the pod's service account. An empty audience: whatever the API server takes for one.
struct TokenWish {
  std::string audience;
  std::int64_t expiration_seconds = 3600;

  friend auto operator<=>(const TokenWish&, const TokenWish&) = default;
};

/// The body of the request to serviceaccounts/NAME/token.
api::Json token_request(const api::Pod& pod, const TokenWish& wish);

struct PayloadSources {
  const DataObjects& objects;
  const api::ResourceList& allocatable;
  std::function<Result<std::string>(const TokenWish&)> token;
  std::optional<std::int64_t> fs_user;
  bool has_fs_group = false;
};

/// True if the agent writes the files of the volume.
bool has_payload(const api::Volume& volume);

std::set<DataReference> references_of(const api::Volume& volume);
std::set<TokenWish> tokens_of(const api::Volume& volume);

using Payload = std::map<std::string, VolumeFile>;

/// kNotFound, kInvalid, or the error of a token, in upstream's words.
Result<Payload> payload_of(const api::Pod& pod, const api::Volume& volume, const PayloadSources& sources);

/// The user that all containers of the pod run as by their own words or the pod's.
std::optional<std::int64_t> fs_user_of(const api::Pod& pod);

/// Checks that files with these paths can be written; errors in upstream's words.
Outcome check_payload_paths(const Payload& payload);

}  // namespace spillway::agent
