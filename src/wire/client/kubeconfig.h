// Where an API server is and who one is there, as kubectl's configuration file says it.
// Thread: any. Only kubeconfig.cc knows yaml-cpp. Source: Kubernetes docs, "Organizing Cluster Access Using kubeconfig
// Files"; client-go clientcmd v1 types.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

/// The current context of a kubeconfig, files read in.
struct Kubeconfig {
  std::string server;           // "https://127.0.0.1:6443[/prefix]"
  std::string authority_pem;    // empty: the system's authorities
  bool verify = true;           // false: insecure-skip-tls-verify
  std::string tls_server_name;  // expected on the server's certificate instead of the host of `server`
  std::string certificate_pem;  // with key_pem, or both empty
  std::string key_pem;
  std::string token;
  std::string token_file;  // what `token` was read from, to be read again (wire/client/bearer_token.h); empty: from nowhere
  std::string name_space;  // of the context; empty: none

  friend bool operator==(const Kubeconfig&, const Kubeconfig&) = default;
};

/// kInvalid: one line that names the file and the field: "/etc/k.conf: clusters[kind].cluster.server: missing".
/// Relative paths in the file are relative to its folder.
Result<Kubeconfig> read_kubeconfig(const std::string& path);
/// The same for text; `path` is only for messages and relative paths.
Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& path);

/// The text of a kubeconfig with one cluster, user and context, all called `name`; certificates and key embedded.
std::string format_kubeconfig(const Kubeconfig& config, std::string_view name);
/// Writes it (mode 0600), replacing the file in one step. kInternalError: the path and the system's words.
Outcome write_kubeconfig(const std::string& path, const Kubeconfig& config, std::string_view name);

}  // namespace spillway::wire
