// The command line and environment of a container: fields of the pod, keys of ConfigMaps and Secrets, and $(NAME)
// references to earlier variables.
// Thread: any (pure). Source: Kubernetes docs, "Define Environment Variables for a Container", "Expose Pod Information
// to Containers Through Environment Variables"; API reference, Container.command.
#pragma once

#include "agent/containers/service_env.h"
#include "agent/volumes/data_objects.h"
#include "api/object/pod.h"
#include "base/error.h"

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::agent {

/// The kernel's bounds (execve(2)): of one argument or NAME=VALUE without its terminator, and of all of them with their
/// terminators and the pointers to them. What is larger is refused before it is made: a program could not be started
/// with it. The second is that of a stack of 8 MiB, as container runtimes have it.
inline constexpr std::size_t kExecStringMax = 128 * 1024 - 1;
inline constexpr std::size_t kExecBytesMax = 2 * 1024 * 1024;

/// Bytes that are written while one environment is made, with those of values that a later one replaces. More than a
/// program takes, as a pod may list a ConfigMap twice; few enough that a start is over in milliseconds.
inline constexpr std::size_t kEnvironmentWrittenMax = 8 * kExecBytesMax;

/// Variables in the order of their definition, found by name. Thread: as a value.
class Environment {
 public:
  using value_type = std::pair<std::string, std::string>;

  Environment() = default;
  Environment(std::initializer_list<value_type> variables);

  /// Finds a variable by its name. nullptr: there is no such variable.
  const std::string* find(std::string_view name) const;
  /// The last value of a name takes the place of the first.
  void set(std::string_view name, std::string value);
  /// Does nothing if the name exists.
  void add(std::string_view name, std::string_view value);

  /// Bytes of all names and values that were set, those included that a later value has replaced.
  std::size_t written_bytes() const { return written_bytes_; }

  const std::vector<value_type>& variables() const { return variables_; }

  auto begin() const { return variables_.begin(); }

  auto end() const { return variables_.end(); }

 private:
  std::vector<value_type> variables_;
  std::map<std::string, std::size_t, std::less<>> places_;  // a tree: names can be chosen so that hashes collide
  std::size_t written_bytes_ = 0;
};

/// Addresses a pod's fields may refer to.
struct PodAddresses {
  std::string host_ip;
  std::string pod_ip;
  std::vector<std::string> pod_ips = {};   // empty: `pod_ip` alone
  std::vector<std::string> host_ips = {};  // empty: `host_ip` alone
};

/// Addresses of the node's family first, else in the given order; the first one is the pod's IP.
std::vector<std::string> in_order_of_family(std::vector<std::string> ips, std::string_view node_ip);

/// $(NAME) → value of NAME; $$ → $; a reference to an unknown name is kept. kRequestEntityTooLarge: the result would be
/// longer than `bytes_max`; no longer text is ever made.
Result<std::string> expand(std::string_view text, const Environment& variables, std::size_t bytes_max = kExecStringMax);
/// Expands references, with values from `find`, which returns null for an unknown name.
Result<std::string> expand(std::string_view text, const std::function<const std::string*(std::string_view name)>& find,
                           std::size_t bytes_max = kExecStringMax);

/// A field of the pod's metadata (agent/volumes/downward.h), "spec.nodeName", "status.podIP", … kInvalid: no field that
/// pods expose.
Result<std::string> field_of(const api::Pod& pod, const PodAddresses& addresses, const api::PodFieldSelector& field);

/// ConfigMaps and Secrets that the variables of a container refer to.
std::set<DataReference> env_references(const api::Container& container);

/// The data of ConfigMaps and Secrets; an absent entry does not exist.
using EnvSources = std::map<DataReference, api::StringMap>;

/// The keys and values of a ConfigMap or Secret; a Secret's are decoded. kInvalid: a value that is not text or not
/// base64.
Result<api::StringMap> env_source_of(DataReference::Kind kind, const api::Json& object);

/// An environment file: a volume of the pod, and the path below it.
using EnvFile = std::pair<std::string, std::string>;

/// Environment files that the variables of a container refer to, in volumes that the pod has.
std::set<EnvFile> env_files(const api::Pod& pod, const api::Container& container);

/// The texts of files; an absent entry did not exist when it was read.
using EnvFiles = std::map<EnvFile, std::string>;

/// Inputs of a container's environment, beside its pod.
struct EnvInputs {
  PodAddresses addresses;
  EnvSources sources = {};
  EnvFiles files = {};
  std::optional<KnownServices> services = {};  // nullopt: containers of this node get no variables of Services
  api::ResourceList allocatable = {};          // replaces limits that are not set
};

/// The keys of whole sources, then its own variables, of which later ones see earlier ones and those of Services; a
/// repeated name takes its last value in its first place. Then the variables of Services whose names are free.
/// kInvalid: a field reference that cannot be resolved; kNotFound: a source or key that is not there and not optional;
/// in upstream's words; kRequestEntityTooLarge: no program could be started with it. Errors of service_variables() as
/// well.
Result<Environment> environment_of(const api::Pod& pod, const api::Container& container, const EnvInputs& inputs);

/// command and args, expanded. kRequestEntityTooLarge: with these variables no program could be started so.
Result<std::vector<std::string>> words_of(const api::Container& container, const Environment& variables);

/// The command line of a container: command and args, expanded. kInvalid: both are empty, and the process runtime has
/// no image to take a command from.
Result<std::vector<std::string>> command_line_of(const api::Container& container, const Environment& variables);

}  // namespace spillway::agent
