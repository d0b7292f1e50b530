// OpenAPI documents, generated from the registry, the wire schema and the descriptions: enough for kubectl to validate,
// diff, patch and explain. Made on first use, a slice at a time; requested documents are kept. Thread: loop. Bound: a
// slice makes schemas of kSliceCost bytes, or one that is longer. Source: spec "API
// server contract", 6.5, 6.6; Kubernetes docs, "The Kubernetes API", OpenAPI.
#pragma once

#include "api/json/json.h"
#include "apiserver/resource/resource_registry.h"
#include "apiserver/resource/slice_queue.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

class RemoteGroups;

class OpenApi {
 public:
  /// A document with its hash, which identifies its content.
  struct Document {
    std::string text;
    std::uint64_t hash = 0;
  };

  /// `remote`: the group versions of other servers, which v2 has as well; null: there are none.
  explicit OpenApi(const ResourceRegistry& registry, std::string version, const RemoteGroups* remote = nullptr);
  ~OpenApi();
  OpenApi(const OpenApi&) = delete;
  OpenApi& operator=(const OpenApi&) = delete;

  /// The address of one of the documents.
  struct Page {
    enum class Of : std::uint8_t {
      kV2Json,      // all kinds and their fields, for older clients
      kV2Protobuf,  // as kV2Json, in protobuf; custom kinds and those of other servers without their fields
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
  struct Making;

  std::unique_ptr<Making> begin(const Page& page) const;
  bool advance(const Page& page, Making& making, SliceBudget& budget) const;
  bool join(const Page& page, Making& making, SliceBudget& budget) const;
  bool join_v2(Making& making, SliceBudget& budget) const;
  bool know_hashes(SliceBudget& budget);
  const Document* keep(const Page& page, std::string text);
  void forget_others();
  std::uint64_t hash_of(const std::string& path, const Resource& row);
  std::string document_text(const Resource& row) const;
  api::Json build(std::string_view group, std::string_view version) const;
  std::string make_index();
  std::string make_v2_protobuf() const;
  void add_remote_kinds(api::Json& definitions) const;

  const ResourceRegistry& registry_;
  std::string version_;
  const RemoteGroups* remote_;
  // Hashes by path; those of built-in groups never change. Each document is made at most twice: for its hash and its
  // text.
  std::map<std::string, std::uint64_t> built_in_hashes_;
  std::map<std::string, Document> built_in_;
  std::map<std::string, Document> custom_;
  // Empty: not made yet.
  std::optional<Document> index_;
  std::optional<Document> v2_json_;
  std::optional<Document> v2_protobuf_;
  std::map<Page, std::unique_ptr<Making>> making_;
  std::uint64_t generation_ = 0;      // table of resources that the documents of custom kinds were made from
  std::uint64_t remote_schemas_ = 0;  // version of the definitions of other servers that v2 was made from
};

}  // namespace spillway::apiserver
