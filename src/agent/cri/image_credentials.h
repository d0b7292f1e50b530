// The user names and passwords of pull Secrets for an image's registry, in the order in which they are tried. Thread:
// any (pure). Source: Kubernetes docs, "Pull an Image from a Private Registry"; spec "Pod lifecycle", 8.6; vectors
// pod-lifecycle/image_credentials, kubelet-surface/credential_match.
#pragma once

#include "agent/contract/runtime_ports.h"
#include "base/error.h"

#include <string>
#include <vector>

namespace spillway::agent {

struct ImageCredential {
  std::string username;
  std::string password;

  friend bool operator==(const ImageCredential&, const ImageCredential&) = default;
};

/// A credential, and the place below which it is for: "*.registry.io/team".
struct PlacedCredential {
  std::string place;
  ImageCredential credential;
};

/// Credentials for the repository of an image (ImageName). Empty: none match, the pull is tried without. kInvalid: a
/// malformed Secret.
Result<std::vector<ImageCredential>> credentials_for(const std::string& repository,
                                                     const std::vector<PullSecret>& secrets);
/// Credentials for the image from answers of plug-ins. Malformed places match nothing.
std::vector<ImageCredential> credentials_among(const std::string& repository,
                                               const std::vector<PlacedCredential>& answered);

}  // namespace spillway::agent
