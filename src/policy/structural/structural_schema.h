// The schema of one version of a custom resource, read from openAPIV3Schema: what is kept of an object, what is filled
// in, what it has to fulfil. Immutable; a copy costs a pointer. Bounds: depth and number of schemas, size of patterns,
// of each and together, so that reading one and checking an object against it take a bounded time.
// Thread: any. Source: Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions"; API reference,
// CustomResourceDefinition v1; OpenAPI 3.0, schema object.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace spillway::structural {

struct Node;

/// Schemas within schemas, and all of them.
inline constexpr std::size_t kSchemaDepthMax = 100;
inline constexpr std::size_t kSchemasMax = 20'000;

class Schema {
 public:
  /// A schema that allows and keeps every object.
  Schema();

  /// Adds all errors; the result is usable only if none was added. `path` is the path of the document:
  /// "spec.validation.openAPIV3Schema".
  static Schema read(const api::Json& document, std::string_view path, api::FieldErrors& errors);

  /// Parses a schema that was accepted before. nullopt: it is no schema at all, or exceeds a limit.
  static std::optional<Schema> reread(const api::Json& document);

  const Node& root() const { return *root_; }

  /// The document that was read.
  const api::Json& document() const { return document_; }

 private:
  Schema(api::Json document, std::shared_ptr<const Node> root)
      : document_(std::move(document)), root_(std::move(root)) {}

  api::Json document_;
  std::shared_ptr<const Node> root_;
};

}  // namespace spillway::structural
