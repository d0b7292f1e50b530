// OpenAPI documents, told from the registry, the wire schema and the descriptions: enough for kubectl to validate,
// diff, patch and explain. Made on first use; what somebody has asked for is kept. Thread: loop. Source: spec "API
// server contract", 6.5, 6.6; Kubernetes docs, "The Kubernetes API", OpenAPI.
#pragma once

#include "api/json/json.h"
#include "apiserver/resource/resource_registry.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver {

class OpenApi {
 public:
  /// With what tells it from others of its address.
  struct Document {
    std::string text;
    std::uint64_t hash = 0;
  };

  OpenApi(const ResourceRegistry& registry, std::string version) : registry_(registry), version_(std::move(version)) {}

  /// GET /openapi/v3: the documents there are, with a hash of each in its URL.
  const Document& v3_index();
  /// GET /openapi/v3/PATH for "api/v1", "apis/apps/v1"; nullptr if there is none.
  const Document* v3_document(const std::string& path);

  /// The kinds and their fields, as older clients need them: protobuf (of custom kinds without the fields) and JSON.
  const Document& v2_protobuf();
  const Document& v2_json();

 private:
  void forget_others();
  std::uint64_t hash_of(const std::string& path, const Resource& row);
  std::string document_text(const Resource& row) const;
  api::Json build(std::string_view group, std::string_view version) const;
  std::string make_index();
  std::string make_v2_protobuf() const;
  std::string make_v2_json() const;

  const ResourceRegistry& registry_;
  std::string version_;
  // By path; those of built-in groups stay as they are. Each is made at most twice: for its hash and for its text.
  std::map<std::string, std::uint64_t> built_in_hashes_;
  std::map<std::string, Document> built_in_;
  std::map<std::string, Document> custom_;
  // Empty: not made yet.
  std::optional<Document> index_;
  std::optional<Document> v2_json_;
  std::optional<Document> v2_protobuf_;
  std::uint64_t generation_ = 0;  // of the table that all but the built-in ones tell of
};

}  // namespace spillway::apiserver
