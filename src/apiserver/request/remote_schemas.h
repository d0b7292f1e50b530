// The part of another server's OpenAPI v2 document that is about one group version: its paths, with all definitions
// and parameters that they lead to. The document is read a member at a time, so that a fiber can yield in between.
// Thread: any (pure). Bounds: kMembersMax, kMemberBytesMax, kBytesMax.
// Source: OpenAPI 2.0, definitions, parameters, reference object; Kubernetes docs, "Kubernetes API Aggregation Layer".
#pragma once

#include "base/error.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

struct RemoteSchemas {
  /// Definitions and parameters of a whole document; a map of them takes a few MiB.
  static constexpr std::size_t kMembersMax = 20'000;
  /// Bytes of one path, definition or parameter: each is parsed in one piece, which takes a few milliseconds.
  static constexpr std::size_t kMemberBytesMax = std::size_t{256} << 10U;
  /// Bytes and members of the part that is kept.
  static constexpr std::size_t kBytesMax = std::size_t{4} << 20U;
  static constexpr std::size_t kKeptMax = 4'096;
  /// Kinds of one definition: options of deletions name one for each group of their server.
  static constexpr std::size_t kKindsMax = 256;

  struct Definition {
    std::string text;                // JSON of an object, without its kinds
    std::vector<std::string> kinds;  // each a JSON object: group, version, kind
    std::string description;         // empty: it has none, or a long one
  };

  /// Texts of JSON by name.
  using Texts = std::map<std::string, std::string, std::less<>>;

  Texts paths;
  Texts parameters;
  std::map<std::string, Definition, std::less<>> definitions;
  std::size_t bytes = 0;
};

using RemoteSchemasPtr = std::shared_ptr<const RemoteSchemas>;

/// Reads the part below the path "/apis/GROUP/VERSION/". Counts its work (base/fiber.h).
/// kInvalid: no OpenAPI v2 document; kRequestEntityTooLarge: it passes a bound.
Result<RemoteSchemas> remote_schemas(std::string_view document, std::string_view path);

}  // namespace spillway::apiserver
