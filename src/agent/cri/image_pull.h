// Decides about the image of a container that is to start: use it, pull it, or wait; keeps the back-off after a failed
// pull. Thread: loop (plain values). Bounds: an entry for each pod and image that failed; those unused for twice the
// longest back-off go. Source: Kubernetes docs, "Images"; spec "Pod lifecycle", 8.1-8.4; vectors
// pod-lifecycle/image_pull.
#pragma once

#include "agent/contract/runtime_ports.h"
#include "base/back_off.h"
#include "base/error.h"
#include "base/time.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway::agent {

inline constexpr Duration kImageBackOffMin = seconds(10);
inline constexpr Duration kImageBackOffMax = minutes(5);

/// An event about the container; `uid` and `container` are the caller's to set.
struct ImageNews {
  PodNotice::Weight weight = PodNotice::Weight::kNormal;
  std::string reason;
  std::string message;
};

/// The reason why the container does not start now.
struct ImageRefusal {
  std::string reason;  // "ErrImagePull", "ImagePullBackOff", …
  std::string message;
};

/// The image is present: no pull is needed.
struct ImagePresent {
  std::string ref;
};

struct ImageToPull {
  std::string name;  // with a tag or digest
};

struct ImageAnswer {
  std::variant<ImagePresent, ImageToPull, ImageRefusal> what;
  std::vector<ImageNews> news;
};

struct ImageWanted {
  std::string pod_uid;
  std::string image;   // image as in the pod
  std::string policy;  // Always, IfNotPresent, Never; "": by the tag
};

struct PulledImage {
  std::string ref;
  std::int64_t size_bytes = 0;
  Duration took{};
  Duration took_with_waiting{};
};

class ImagePulls {
 public:
  /// Absent: the runtime has to be queried for the image. Else the answer, which needs no query.
  std::optional<ImageAnswer> begin(const ImageWanted& wanted, Instant now);
  /// `present`: the image's ref, empty if there is none; or the error of the runtime's answer.
  ImageAnswer on_status(const ImageWanted& wanted, const Result<std::string>& present, Instant now);
  /// The result of ImageToPull.
  ImageAnswer on_pulled(const ImageWanted& wanted, const Result<PulledImage>& pulled, Instant now);

 private:
  struct Failure {
    Instant at{};
    BackOff back_off{kImageBackOffMin, kImageBackOffMax};
    std::string what;  // reason and message; empty: none that counts
  };

  ImageAnswer pull_or_wait(const ImageWanted& wanted, Instant now);
  static std::string key_of(const ImageWanted& wanted);

  std::map<std::string, Failure> failures_;
};

/// The default pull policy: Always for the tag "latest", else IfNotPresent.
std::string pull_policy_of(std::string_view image, std::string_view policy);

}  // namespace spillway::agent
