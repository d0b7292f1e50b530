// The way to an API server that a kubeconfig names.
#pragma once

#include "base/error.h"
#include "cli/flags/command_line.h"
#include "client/engine.h"
#include "runtime/loop.h"
#include "wire/client/kubeconfig.h"
#include "wire/transport/https_transport.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace spillway::apps {

/// HTTP protocols to offer: HTTP/2 and HTTP/1.1, or only the latter if $DISABLE_HTTP2 is set, as client-go does.
wire::Protocols offered_protocols();

struct Remote {
  std::unique_ptr<wire::HttpsTransport> transport;
  std::string authority_pem;  // the cluster's; empty over plain HTTP
  std::string host;           // "192.0.2.7:6443"
  std::string host_name;      // "192.0.2.7"
  std::uint16_t port = 0;
  bool speaks_tls = true;
};

/// The kubeconfig files of a serving process: --kubeconfig, else the files of $KUBECONFIG. kInvalid: neither is set.
Result<std::vector<std::string>> named_kubeconfigs(const cli::ClusterArgs& args);

/// The kubeconfig of a process, or of a command for people: the file that was given, else those of $KUBECONFIG, else
/// the one `spillway up` writes, else ~/.kube/config. kInvalid: what is wrong with a file, and where, or that there is
/// none.
Result<wire::Kubeconfig> find_kubeconfig(const cli::ClusterArgs& args);

/// kInvalid: as of find_kubeconfig(). Nothing is connected yet.
Result<Remote> connect_remote(runtime::Loop& loop, const cli::ClusterArgs& args,
                              const wire::HttpClient::Limits& limits = {});
Result<Remote> connect_remote(runtime::Loop& loop, const wire::Kubeconfig& config,
                              const wire::HttpClient::Limits& limits = {});

}  // namespace spillway::apps
