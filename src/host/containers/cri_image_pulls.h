// Images of containers that are to start: used as they are, or pulled, a few at a time and at a limited pace. The steps
// of one image are those of CriImagePull. Thread: loop. Bounds: CriRuntimeOptions::parallel_pulls pulls, kPullsMax that
// wait; a deadline on every call. Source: Kubernetes docs, "Images"; spec "Pod lifecycle", 8.
#pragma once

#include "agent/contract/ports.h"
#include "agent/cri/image_pull.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "host/containers/credential_plugins.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pods.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

class CriImagePull;

/// The request that describes an image.
api::Json image_request(std::string_view name);

class CriImagePulls {
 public:
  static constexpr std::size_t kPullsMax = 1'000;

  struct Wish {
    agent::ImageWanted image;
    std::string container;  // events are about it
    std::vector<agent::PullSecret> secrets;
    Instant asked{};
  };

  /// nullopt: the image is there.
  using Done = std::move_only_function<void(std::optional<agent::ImageRefusal>)>;

  /// Both outlive this object.
  CriImagePulls(const CriHost& host, const CriPods& pods);
  ~CriImagePulls();
  CriImagePulls(const CriImagePulls&) = delete;
  CriImagePulls& operator=(const CriImagePulls&) = delete;

  /// `done`: called once, perhaps from inside.
  void ensure(Wish wish, Done done);

 private:
  friend CriImagePull;

  /// False: the pace of pulls does not allow one more now.
  bool take_token();
  /// Lets waiting pulls begin while there is room for them.
  void begin_next();

  const CriHost& host_;
  const CriPods& pods_;
  agent::ImagePulls images_;
  CredentialPlugins credential_plugins_;
  std::deque<std::shared_ptr<CriImagePull>> waiting_;
  std::size_t pulling_ = 0;
  std::optional<TokenBucket> tokens_;  // nullopt: pulls are not limited
};

}  // namespace spillway::host
