// Programs that return user names and passwords for registries (image credential provider plug-ins): the file that
// lists them, the request and the answer of one, and the cache of answers.
// Thread: any (pure; time is an argument). Bounds: kKeptAnswersMax answers per plug-in. Source: Kubernetes docs,
// "Configure a kubelet image credential provider"; credentialprovider.kubelet.k8s.io/v1;
// vectors kubelet-surface/credential_match.
#pragma once

#include "agent/cri/image_credentials.h"
#include "api/json/json.h"
#include "base/error.h"
#include "base/time.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::agent {

/// One entry of a CredentialProviderConfig.
struct CredentialProvider {
  std::string name;  // names a file in the directory of plug-ins
  std::vector<std::string> match_images;
  Duration default_cache_duration{};
  std::string api_version;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;
};

struct CredentialProviders {
  std::vector<CredentialProvider> providers;
  // errors in the order of the file, in upstream's words; with any error the whole file has no effect
  std::vector<std::string> errors;
};

CredentialProviders parse_credential_providers(const api::Json& document);

/// A credential plug-in with its cached answers.
class CredentialPlugin {
 public:
  static constexpr std::size_t kKeptAnswersMax = 1'000;

  explicit CredentialPlugin(CredentialProvider provider) : provider_(std::move(provider)) {}

  const CredentialProvider& provider() const { return provider_; }

  /// `image`: without tag and digest. A malformed pattern matches nothing.
  bool is_for(std::string_view image) const;
  /// An answer that is still good; null: the program has to run.
  const std::vector<PlacedCredential>* kept(std::string_view image, Instant now) const;
  /// The text for its standard input, without a line feed.
  std::string request_for(std::string_view image) const;
  /// Parses the output and caches it for the time that it states. kInvalid: it is no answer, and nothing is cached.
  Result<std::vector<PlacedCredential>> on_answer(std::string_view image, std::string_view text, Instant now);

 private:
  struct Kept {
    std::vector<PlacedCredential> credentials;
    Instant until{};
  };

  CredentialProvider provider_;
  std::map<std::string, Kept, std::less<>> kept_;
};

}  // namespace spillway::agent
