// The last step of every write: document to bytes, bytes to the store under a condition, and back the object that the
// cache made of them. Thread: loop. Source: spec "API server contract", 8, 22.1.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/read/core.h"
#include "apiserver/read/stored_object.h"
#include "apiserver/request/exchange.h"
#include "store/store.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace spillway::apiserver {

struct Commit {
  bool committed = false;
  /// Committed: the object as stored, or the last state of a deleted one. Not committed: the present object, null if
  /// absent.
  ObjectPtr object;
};

/// New bytes for an object, if it is still what is stored; they differ in the values of times alone.
struct Renewal {
  const Resource& resource;
  ObjectPtr current;
  std::string bytes;
  std::optional<api::Json> document;  // the bytes as JSON, if a reader will need it
};

/// Records a write as a step of the request that caused it, begun now; null: no request did.
class StoreStep {
 public:
  StoreStep(const Core& core, const ExchangePtr& asked, const Resource& resource) : core_(core) {
    if (asked == nullptr || !asked->steps.are_kept()) return;
    asked_ = asked;
    step_ = asked_->steps.begin(RequestStep::Of::kStore, std::string(resource.plural), core.now.mono);
  }

  void end(const api::StatusResult<Commit>& result) const {
    if (asked_) asked_->steps.end(step_, core_.now.mono, !result);
  }

 private:
  const Core& core_;
  ExchangePtr asked_;
  std::optional<std::size_t> step_;
};

/// The document in its stored form: a custom kind in its storage version, pruned by its schema.
api::Json at_rest_of(const Resource& stored, api::Json document);

class Committer {
 public:
  /// An error means the store did not write: 413, 429 or 503, and 500 for a value at rest that cannot be read, or
  /// whose unknown fields a write would lose.
  using Done = std::move_only_function<void(api::StatusResult<Commit>)>;

  explicit Committer(Core& core) : core_(core) {}

  /// kPassed: the document has passed the checks of the writer already.
  enum class Checks : std::uint8_t { kSkipped, kPassed };

  /// `expected` 0: must not exist. `document` is in stored form.
  void put(const Resource& resource, std::string key, api::Json document, store::Revision expected, Checks checks,
           Done done);
  void renew(Renewal renewal, Done done);
  /// `last`: the object that the DELETED event shows; null: the stored one.
  void erase(const Resource& resource, std::string key, api::Json last, store::Revision expected, Done done);

  /// The answer to a dry run: never stored, keeps its present resourceVersion.
  static ObjectPtr imagine(const Resource& resource, api::Json document);

 private:
  void write(const Resource& resource, std::string key, store::Write write, Done done);

  store::Store& store_of(const Resource& resource) { return core_.cache.of(resource).origin().store(); }

  api::StatusResult<ObjectPtr> object_of(const Resource& resource, const std::string& key, const store::Value& value,
                                         store::Revision revision);
  api::StatusResult<void> may_write(const Resource& resource, const std::string& key) const;
  api::StatusResult<Commit> commit_of(const Resource& resource, const std::string& key,
                                      const store::WriteResult& result, const store::Value& written);

  Core& core_;
};

}  // namespace spillway::apiserver
