// OpenAPI documents, generated from the registry, the wire schema and the descriptions: enough for kubectl to validate,
// diff, patch and explain. Made on first use, a slice at a time; requested documents are kept. Thread: loop. Bound: a
// slice makes schemas of kSliceCost bytes, or one that is longer. Source: spec "API
// server contract", 6.5, 6.6; Kubernetes docs, "The Kubernetes API", OpenAPI.
#pragma once

#include "api/json/json.h"
#include "apiserver/request/openapi_schemas.h"
#include "apiserver/resource/resource_registry.h"
#include "apiserver/resource/slice_queue.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

class OpenApi {
 public:
  /// A document with its hash, which identifies its content.
  struct Document {
    std::string text;
    std::uint64_t hash = 0;
  };

  OpenApi(const ResourceRegistry& registry, std::string version) : registry_(registry), version_(std::move(version)) {}

  /// The address of one of the documents.
  struct Page {
    enum class Of : std::uint8_t {
      kV2Json,      // all kinds and their fields, for older clients
      kV2Protobuf,  // as kV2Json, in protobuf; custom kinds without their fields
      kV3Index,     // the list of documents, each with a hash in its URL
      kV3Document,  // document of one group and version
    };
    Of of = Of::kV2Json;
    std::string path = {};  // for kV3Document: "api/v1", "apis/apps/v1"

    friend auto operator<=>(const Page&, const Page&) = default;
  };

  bool has(const Page& page) const;
  /// The page; null: it has not been made since the table of resources changed.
  const Document* find(const Page& page);
  /// Continues making the page; null: the slice is used up. The page must exist.
  const Document* make(const Page& page, SliceBudget& budget);
  /// Makes all of it at once; null: there is no such page.
  const Document* whole(const Page& page);

 private:
  /// A document that is being made: the schemas as text, by name, then the whole.
  struct Making {
    explicit Making(OpenApiVersion version) : schemas(version) {}

    OpenApiSchemas schemas;
    std::vector<const Resource*> rows;
    std::size_t next_row = 0;
    api::Json paths = api::Json::object();
    std::map<std::string, std::string> texts;
    bool is_joined = false;  // no schema is missing: `texts` are moved to `text`
    std::string text;
  };

  Making begin(const Page& page) const;
  bool advance(const Page& page, Making& making, SliceBudget& budget) const;
  bool join(const Page& page, Making& making, SliceBudget& budget) const;
  bool know_hashes(SliceBudget& budget);
  const Document* keep(const Page& page, std::string text);
  void forget_others();
  std::uint64_t hash_of(const std::string& path, const Resource& row);
  std::string document_text(const Resource& row) const;
  api::Json build(std::string_view group, std::string_view version) const;
  std::string make_index();
  std::string make_v2_protobuf() const;

  const ResourceRegistry& registry_;
  std::string version_;
  // Hashes by path; those of built-in groups never change. Each document is made at most twice: for its hash and its
  // text.
  std::map<std::string, std::uint64_t> built_in_hashes_;
  std::map<std::string, Document> built_in_;
  std::map<std::string, Document> custom_;
  // Empty: not made yet.
  std::optional<Document> index_;
  std::optional<Document> v2_json_;
  std::optional<Document> v2_protobuf_;
  std::map<Page, Making> making_;
  std::uint64_t generation_ = 0;  // table of resources that the documents of custom kinds were made from
};

}  // namespace spillway::apiserver
