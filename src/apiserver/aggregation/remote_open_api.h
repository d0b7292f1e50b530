// OpenAPI v2 documents of aggregated API servers, fetched when an APIService is added, changes or becomes available,
// and with each refresh. Of a document only the part about the group version is kept. It stays while its server does
// not answer, and goes with its APIService, or when the server has no such document any more. Thread: loop; documents
// are read in slices. Bounds: kDocumentBytesMax and kTimeMax for each document, kFetchesMax at a time, kKeptBytesMax
// for the parts of all. Source: Kubernetes docs, "Kubernetes API Aggregation Layer".
#pragma once

#include "apiserver/aggregation/due_names.h"
#include "apiserver/aggregation/remote_apis.h"
#include "apiserver/aggregation/remote_fetch.h"
#include "apiserver/read/core.h"
#include "apiserver/request/remote_schemas.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace spillway::apiserver {

class RemoteOpenApi {
 public:
  /// A document has all group versions of its server; that of a whole stock server has 4 MiB.
  static constexpr std::size_t kDocumentBytesMax = std::size_t{8} << 20U;
  static constexpr std::size_t kKeptBytesMax = std::size_t{16} << 20U;
  static constexpr std::size_t kFetchesMax = 2;
  static constexpr Duration kTimeMax = seconds(10);

  RemoteOpenApi(Core& core, RemoteFetch& fetch) : core_(core), fetch_(fetch) {}

  /// Called with all APIs when some of them were added, removed or changed.
  void follow(const std::vector<RemoteApiPtr>& apis);
  /// Fetches all documents again.
  void refresh();

  /// Null: the API has none.
  RemoteSchemasPtr find(const std::string& name) const;

  /// Changes whenever a document does.
  std::uint64_t version() const { return version_; }

 private:
  struct Known {
    RemoteApiPtr api;
    std::string tag;         // ETag of the document that was read last
    std::uint64_t hash = 0;  // hash of its text
    RemoteSchemasPtr schemas;
    std::string error;  // why the last document was left out; empty: it was read
  };
  struct Reading;

  void fetch_next();
  void fetch(const std::string& name, const Known& known);
  void on_answer(const std::string& name, const RemoteApiPtr& api, Result<api::Response> answer);
  void read(const std::string& name, const RemoteApiPtr& api, api::Response document);
  void on_read(const std::string& name, const RemoteApiPtr& api, const Result<RemoteSchemas>& part);
  void keep(Known& known, RemoteSchemasPtr schemas);
  void refuse(const std::string& name, Known& known, const Error& error);
  /// Null: the APIService was removed, or made anew, meanwhile.
  Known* current(const std::string& name, const RemoteApiPtr& api);
  std::size_t kept_bytes_besides(const std::string& name) const;

  Core& core_;
  RemoteFetch& fetch_;
  std::map<std::string, Known, std::less<>> known_;
  DueNames due_{kFetchesMax};
  std::uint64_t version_ = 0;
};

}  // namespace spillway::apiserver
