// Static pods of an address (staticPodURL), requested again and again: a Pod or a PodList, as JSON or YAML.
// Thread: loop; the connection and the parsing have a thread of their own. Bounds: one request at a time, which takes
// at most kAnswerMax; kBytesMax of an answer; kPodsMax pods. A redirect is an error: only the server that the
// configuration names gets the request and its headers. Source: Kubernetes docs, "Create static Pods"; spec "Node
// agent", 16.
#pragma once

#include "agent/config/manifest_config.h"
#include "agent/contract/static_manifests.h"
#include "base/error.h"
#include "base/time.h"
#include "runtime/loop.h"
#include "runtime/loop_thread.h"
#include "wire/client/http_client.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace spillway::apps {

class ManifestUrl {
 public:
  static constexpr Duration kAnswerMax = seconds(10);
  static constexpr std::size_t kBytesMax = std::size_t{4} * 1024 * 1024;
  static constexpr std::size_t kPodsMax = 256;

  using Listener = std::function<void(const agent::StaticManifests&)>;

  /// Requests at once. `listener` is called on the loop after every answer that differs from the one before, and after
  /// every failure. kInvalid: `settings` has no server that can be asked.
  static Result<std::unique_ptr<ManifestUrl>> create(runtime::Loop& loop, agent::ManifestUrlSettings settings,
                                                     Listener listener);
  ~ManifestUrl();
  ManifestUrl(const ManifestUrl&) = delete;
  ManifestUrl& operator=(const ManifestUrl&) = delete;

 private:
  class Fetch;
  struct Polling;

  ManifestUrl(runtime::Loop& loop, wire::HttpEndpoint endpoint, agent::ManifestUrlSettings settings, Listener listener);

  void ask();

  agent::ManifestUrlSettings settings_;
  std::shared_ptr<Polling> polling_;
  std::shared_ptr<std::string> last_text_ = std::make_shared<std::string>();  // used on io_ only
  std::uint64_t last_id_ = 0;
  runtime::LoopThread io_;
  std::shared_ptr<wire::HttpClient> client_;  // used on io_ only
};

/// The manifests of an answer: each pod of a list under "URL#INDEX". kInvalid: it is neither a Pod nor a PodList.
Result<agent::StaticManifests> manifests_in(const std::string& url, const std::string& text);

}  // namespace spillway::apps
