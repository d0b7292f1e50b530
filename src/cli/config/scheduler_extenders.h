// The extenders of a KubeSchedulerConfiguration: their addresses, their calls, and the certificates that verify them.
// Thread: any (pure). Bounds: scheduling::kExtendersMax. Source: Kubernetes docs, "Scheduler Configuration";
// kube-scheduler configuration (v1), Extender, ExtenderTLSConfig.
#pragma once

#include "base/error.h"
#include "policy/scheduling/extender.h"
#include "policy/scheduling/profile.h"
#include "yaml/place.h"

#include <string>
#include <vector>

namespace spillway::cli {

/// TLS between scheduler and extender: how the extender is verified, and the scheduler's own certificate. In each pair
/// the data take precedence over the file.
struct ExtenderTls {
  bool enabled = false;   // enableHTTPS
  bool insecure = false;  // the extender's certificate is not verified
  std::string server_name;
  std::string ca_file;
  std::string ca_pem;  // with ca_file empty: the authorities of the system
  std::string certificate_file;
  std::string certificate_pem;
  std::string key_file;
  std::string key_pem;
  std::string where;  // "FILE:LINE: extenders[0]", place for errors about files

  friend bool operator==(const ExtenderTls&, const ExtenderTls&) = default;
};

struct ExtenderSet {
  std::vector<scheduling::Extender> rules;
  std::vector<ExtenderTls> tls;      // one per extender
  std::vector<std::string> ignored;  // extended resources that the scheduler does not count: ignoredByScheduler

  friend bool operator==(const ExtenderSet&, const ExtenderSet&) = default;
};

/// Parses `extenders` of the configuration. kInvalid: the mistake and its place.
Result<ExtenderSet> read_extenders(const yaml::Place& top);
/// As upstream, the extenders' ignored resources replace those of the arguments of NodeResourcesFit.
void ignore_managed(const ExtenderSet& extenders, std::vector<scheduling::Profile>& profiles);

}  // namespace spillway::cli
