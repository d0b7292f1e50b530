// The address of an API server and the user's credentials, from kubectl's configuration files.
// Thread: any. Source: Kubernetes docs, "Organizing Cluster Access Using kubeconfig Files"; client-go clientcmd v1
// types.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::wire {

/// users[].user.exec: a program that prints credentials.
struct CredentialProgram {
  std::string api_version;  // client.authentication.k8s.io/v1 or /v1beta1
  std::string command;      // a path, or a name to be found in $PATH
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
  std::string install_hint;                                      // shown if the program does not exist
  bool wants_cluster = false;                                    // provideClusterInfo

  friend bool operator==(const CredentialProgram&, const CredentialProgram&) = default;
};

/// One context of a kubeconfig, with the content of the files that it names.
struct Kubeconfig {
  std::string path;             // path of the file, or "a:b"; for messages
  std::string server;           // "https://127.0.0.1:6443[/prefix]"
  std::string authority_pem;    // empty: the system's authorities
  bool verify = true;           // false: insecure-skip-tls-verify
  std::string tls_server_name;  // expected on the server's certificate instead of the host of `server`
  std::string certificate_pem;  // with key_pem, or both empty
  std::string key_pem;
  std::string token;
  std::string token_file;  // file of `token`, which is read again when it changes (bearer_token.h); empty: none
  std::string username;    // with password, or both empty
  std::string password;
  std::optional<CredentialProgram> program;  // counts only where the user has nothing else
  std::string name_space;                    // the context's namespace; empty: none

  friend bool operator==(const Kubeconfig&, const Kubeconfig&) = default;
};

/// The choices of a command line that override the files; empty: the files decide.
struct KubeconfigChoice {
  std::string context;
  std::string cluster;
  std::string user;
  std::string name_space;
};

/// The files as one: of entries with the same name, and of current-context, the first counts. Relative paths are
/// relative to the folder of their file. Files that do not exist are skipped, unless there is only one. kInvalid: one
/// line that names file and field, "/etc/k.conf: clusters[kind].cluster.server: missing"; kNotFound: there is no file.
Result<Kubeconfig> read_kubeconfig(const std::vector<std::string>& files, const KubeconfigChoice& choice);
Result<Kubeconfig> read_kubeconfig(const std::string& path);
/// Parses the text of a kubeconfig; `path` is used for messages and relative paths.
Result<Kubeconfig> parse_kubeconfig(const std::string& text, const std::string& path);

/// The text of a kubeconfig with one cluster, user and context, all called `name`; certificates and key embedded.
std::string format_kubeconfig(const Kubeconfig& config, std::string_view name);
/// Writes it (mode 0600), replacing the file in one step. kInternalError: the path and the system's words.
Outcome write_kubeconfig(const std::string& path, const Kubeconfig& config, std::string_view name);

}  // namespace spillway::wire
