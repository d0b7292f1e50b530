// Parses KubeletConfiguration v1beta1 for this agent: the known fields, their types, and those that have an effect
// here; merges documents into the configuration in effect.
// Thread: any (pure). All errors are reported, not the first alone; each finding names the path, and the line if the
// document came from a file. Source: Kubernetes docs, "Kubelet Configuration (v1beta1)", "Set Kubelet Parameters Via A
// Configuration File" (drop-in files); spec "Node agent", 21.
#pragma once

#include "agent/contract/options.h"
#include "api/json/json.h"
#include "base/bytes.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// The place of a value in its document, and its spelling.
struct ScalarOrigin {
  int line = 0;      // from 1
  std::string text;  // the scalar as written; empty for lists and mappings
};

/// The origin of the value with this path ("evictionHard[memory.available]"); nullopt: unknown.
using OriginFinder = std::function<std::optional<ScalarOrigin>(std::string_view path)>;

/// A key that its mapping has had before: the last value counts.
struct RepeatedConfigKey {
  int line = 0;
  int first_line = 0;
  std::string key;
};

/// A document, and a way to the places of its values.
struct ConfigDocument {
  std::string file;  // empty: flags
  api::Json value;
  OriginFinder origins = {};  // empty: unknown
  std::vector<RepeatedConfigKey> repeated = {};

  ScalarOrigin origin_of(std::string_view path) const {
    return origins ? origins(path).value_or(ScalarOrigin{}) : ScalarOrigin{};
  }
};

struct ConfigFinding {
  /// kTolerated: a mistake with which a kubelet starts all the same, as its lenient decoding does.
  enum class Kind { kError, kTolerated, kNotImplemented };
  Kind kind = Kind::kError;
  std::string file;
  int line = 0;  // 0: unknown
  std::string path;
  std::string message;

  /// "FILE:LINE: path: message".
  std::string text() const;
};

struct CheckedConfig {
  api::Json value;  // scalars of the type the field has
  std::vector<ConfigFinding> findings;
};

/// Reports unknown keys (with the nearest known one) and repeated ones, wrong types, invalid values, and fields without
/// an effect here.
CheckedConfig check_config(const ConfigDocument& document);

/// The document in the form of a file. The answer of a kubelet's /configz has the member kubeletconfig around it, and
/// neither apiVersion nor kind. `has_header`: false if they were missing and are added. Line numbers stay those of the
/// file.
struct ConfigFile {
  ConfigDocument document;
  bool has_header = true;
};

ConfigFile as_config_file(ConfigDocument document);

/// `over` wins: mappings merge key by key, lists and scalars are replaced, as upstream merges drop-in files.
api::Json merge_config(api::Json base, const api::Json& over);
/// The same, but eviction and reservation maps are replaced as a whole, as flags do; feature gates and mappings with
/// members of their own are not.
api::Json apply_flags(api::Json base, const api::Json& flags);

/// Every default filled in. Hard thresholds that are not named are upstream's (for a small node: of its size), unless
/// some are named and mergeDefaultEvictionSettings is not set. The report frequency follows the update frequency if
/// only that is given. Durations of zero count as absent. `value`: checked.
api::Json effective_config(const api::Json& value, std::optional<Bytes> node_memory);

/// `effective`: of effective_config. kInvalid: a threshold, quantity or taint that cannot be.
Result<AgentOptions> options_of(const api::Json& effective);

/// The thresholds of an effective configuration, as written.
eviction::ThresholdConfig threshold_config_of(const api::Json& effective);

}  // namespace spillway::agent
