// The command line and environment of a container: fields of the pod, keys of ConfigMaps and Secrets, and $(NAME)
// references to earlier variables.
// Thread: any (pure). Source: Kubernetes docs, "Define Environment Variables for a Container", "Expose Pod Information
// to Containers Through Environment Variables"; API reference, Container.command.
#pragma once

#include "agent/containers/service_env.h"
#include "agent/volumes/data_objects.h"
#include "api/object/pod.h"
#include "base/error.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::agent {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Addresses a pod's fields may refer to.
struct PodAddresses {
  std::string host_ip;
  std::string pod_ip;
  std::vector<std::string> pod_ips = {};   // empty: `pod_ip` alone
  std::vector<std::string> host_ips = {};  // the same
};

/// Those of the node's family first, else as they were; the first one is the pod's IP.
std::vector<std::string> in_order_of_family(std::vector<std::string> ips, std::string_view node_ip);

/// $(NAME) → value of NAME; $$ → $; a reference to an unknown name stays as it is.
std::string expand(std::string_view text, const Environment& variables);
/// The same, asking `find`: null is an unknown name.
std::string expand(std::string_view text, const std::function<const std::string*(std::string_view name)>& find);

/// A field of the pod's metadata (agent/volumes/downward.h), "spec.nodeName", "status.podIP", … kInvalid: no field that
/// pods expose.
Result<std::string> field_of(const api::Pod& pod, const PodAddresses& addresses, const api::PodFieldSelector& field);

/// What the variables of a container refer to.
std::set<DataReference> env_references(const api::Container& container);

/// Their keys and values; what is missing does not exist.
using EnvSources = std::map<DataReference, api::StringMap>;

/// The keys and values of such an object; a Secret's are decoded. kInvalid: a value that is no text or no base64.
Result<api::StringMap> env_source_of(DataReference::Kind kind, const api::Json& object);

/// What the environment of a container is made of, beside its pod.
struct EnvInputs {
  PodAddresses addresses;
  EnvSources sources = {};
  std::optional<KnownServices> services = {};  // nullopt: this node tells containers of none
  api::ResourceList allocatable = {};          // what limits that are not set count as
};

/// The keys of whole sources, then its own variables, of which later ones see earlier ones and those of Services; a
/// repeated name takes its last value in its first place. Then the variables of Services whose names are free.
/// kInvalid: a field reference that cannot be resolved; kNotFound: a source or key that is not there and not optional;
/// in upstream's words. Errors of service_variables() as well.
Result<Environment> environment_of(const api::Pod& pod, const api::Container& container, const EnvInputs& inputs);

/// command and args, expanded. kInvalid: both are empty, and the process runtime has no image to take a command from.
Result<std::vector<std::string>> command_line_of(const api::Container& container, const Environment& variables);

}  // namespace spillway::agent
