// Calls to conversion webhooks: each carries the objects of one request that have another version than wanted, up to
// kBatchBytes of them. Results are kept for as long as there is room, and a result that is under way is waited for, so
// a change is converted once for each version, however many clients watch it.
// Thread: loop. Bounds: kCallsOfKind calls of one kind at a time and kCallBytesMax in all, kWaitingMax wait; kCallTime
// for one; kObjectsMax objects and kRequestBytesMax of one request; kKeptBytesMax of results.
// Source: Kubernetes docs, "Versions in CustomResourceDefinitions", webhook conversion.
#pragma once

#include "apiserver/ports/webhook_caller.h"
#include "apiserver/read/core.h"
#include "apiserver/read/object_converter.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apiserver {

class ConversionCalls final : public ObjectConverter {
 public:
  static constexpr std::size_t kBatchBytes = 1U << 20U;
  static constexpr std::size_t kCallsOfKind = 16;
  static constexpr std::size_t kCallBytesMax = 64U << 20U;
  static constexpr std::size_t kWaitingMax = 4'096;
  static constexpr std::size_t kObjectsMax = 100'000;
  static constexpr std::size_t kRequestBytesMax = 64U << 20U;
  static constexpr std::size_t kKeptBytesMax = 32U << 20U;
  /// A webhook has 30 s as upstream, however long the request may take.
  static constexpr Duration kCallTime = seconds(30);

  /// `caller` null: no webhook can be called.
  ConversionCalls(Core& core, WebhookCaller* caller) : core_(core), caller_(caller) {}

  ~ConversionCalls() override;
  ConversionCalls(const ConversionCalls&) = delete;
  ConversionCalls& operator=(const ConversionCalls&) = delete;

  // ObjectConverter
  void convert(const Resource& row, std::vector<ObjectPtr> objects, Of of, Converted done) override;
  void convert(const Resource& row, api::Json document, DocumentConverted done) override;

 private:
  /// One convert() that waits for objects.
  struct Request {
    std::vector<ObjectPtr> objects;
    std::size_t open = 0;  // objects that are not converted yet
    Converted done;
  };

  using RequestPtr = std::shared_ptr<Request>;

  /// A request that waits for an object, and the place of the object in it.
  struct Waiter {
    RequestPtr request;
    std::size_t place = 0;
  };

  /// The objects that one call carries.
  struct Batch {
    const Resource* row = nullptr;
    CustomKindPtr kind;  // keeps the row
    Of of = Of::kObject;
    std::vector<ObjectPtr> objects;
    std::vector<std::string> keys;  // in converted_ and waiting_; empty: of a document that is not stored
    std::size_t bytes = 0;
    std::string uid;
    std::string url;
    DocumentConverted document_done;
    TimerQueue::Id timer;
  };

  /// A result, and the object that it was made of.
  struct Kept {
    ObjectPtr original;
    ObjectPtr converted;
  };

  using BatchPtr = std::shared_ptr<Batch>;

  static std::string key_of(const Resource& row, const ObjectPtr& object);
  static std::size_t bytes_of(const Kept& kept);
  ObjectPtr found(const std::string& key) const;
  void keep(const std::string& key, Kept result);
  void start_waiting();
  void call(const BatchPtr& batch);
  void on_answer(std::uint64_t id, const Result<api::Response>& response, Now now);
  void finish(std::uint64_t id, const Result<api::Response>& response);
  void fail_soon(const BatchPtr& batch, std::string why);
  void end(Batch& batch, api::StatusResult<std::vector<api::Json>> converted);
  void deliver(const std::string& key, const api::StatusResult<ObjectPtr>& object);

  Core& core_;
  WebhookCaller* caller_;
  std::uint64_t last_ = std::uint64_t{1} << 62U;  // calls of admission count from 0, at the same caller
  std::map<std::uint64_t, BatchPtr> calls_;
  std::map<std::string, std::size_t, std::less<>> open_;  // calls, by name of the kind
  std::size_t call_bytes_ = 0;
  std::deque<BatchPtr> queue_;  // oldest first
  std::map<std::string, std::vector<Waiter>> waiting_;
  std::map<std::string, Kept> kept_;
  std::deque<std::string> kept_order_;  // oldest first
  std::size_t kept_bytes_ = 0;
};

}  // namespace spillway::apiserver
