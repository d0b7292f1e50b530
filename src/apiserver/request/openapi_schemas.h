// Schemas of OpenAPI documents: built-in types as the wire schema and the descriptions have them, custom kinds as their
// definitions do. Thread: loop. Source: Kubernetes docs, "The Kubernetes API", OpenAPI; OpenAPI 2.0 and 3.0, schema
// object; "Extend the Kubernetes API with CustomResourceDefinitions", publish validation schema in OpenAPI.
#pragma once

#include "api/json/json.h"
#include "api/schema/schema.h"
#include "apiserver/request/kind_extension.h"
#include "apiserver/resource/resource_registry.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

/// {"group": …, "version": …, "kind": …}.
api::Json group_version_kind(const Resource& row);

/// Versions of OpenAPI. In the older one a reference may have members beside it, in the newer one it is wrapped.
enum class OpenApiVersion : std::uint8_t { kV2, kV3 };

/// "io.k8s.api.core.v1.Pod"; of a custom kind "com.example.stable.v1.CronTab".
std::string schema_name(const Resource& row);

/// The schemas of one document: those referred to, and all that they refer to in turn.
class OpenApiSchemas {
 public:
  explicit OpenApiSchemas(OpenApiVersion version) : version_(version) {}

  /// A schema that refers to that of a kind.
  api::Json reference(const Resource& row);
  /// The next schema that is referred to and not made yet, with its name; it may refer to others. nullopt: there is
  /// none.
  std::optional<std::pair<std::string, api::Json>> next();
  /// All schemas by name, once next() has returned nullopt.
  api::Json finish();

 private:
  api::Json reference(const api::Type& type);
  api::Json reference_to(const std::string& name) const;
  api::Json described_reference(api::Json reference, std::string_view description) const;
  api::Json custom_schema(const Resource& row);
  api::Json schema_of(const api::Type& type);
  api::Json property_of(const api::Field& field, std::string_view description);
  api::Json value_of(const api::Field& field);

  OpenApiVersion version_;
  std::set<std::string> known_;
  std::vector<const api::Type*> waiting_;
  std::vector<std::pair<std::string, api::Json>> custom_;
};

}  // namespace spillway::apiserver
