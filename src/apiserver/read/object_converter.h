// Conversion of custom objects between versions by a webhook, as readers and writers use it. Thread: loop.
// Source: Kubernetes docs, "Versions in CustomResourceDefinitions", webhook conversion.
#pragma once

#include "api/exchange/status.h"
#include "apiserver/read/stored_object.h"
#include "apiserver/resource/custom_kind.h"
#include "apiserver/resource/resource_registry.h"

#include <functional>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// True if objects of the row may need a webhook before they can be shown in its version.
inline bool has_webhook(const Resource& row) {
  return row.custom != nullptr && row.custom->kind->webhook() != nullptr;
}

/// True if the object has another version than the row, and a webhook has to convert it.
inline bool needs_webhook(const Resource& row, const StoredObject& object) {
  return has_webhook(row) && row.custom->needs_webhook(object.meta.api_version);
}

class ObjectConverter {
 public:
  using Converted = std::move_only_function<void(api::StatusResult<std::vector<ObjectPtr>>)>;
  using DocumentConverted = std::move_only_function<void(api::StatusResult<api::Json>)>;

  /// The kind of a failed request, as messages name it.
  enum class Of { kObject, kList };

  virtual ~ObjectConverter() = default;
  /// The objects in the form of `row`, in their order; those that have it already are not touched. 500: the webhook
  /// failed, in upstream's words. 413, 429: too many. `done` is called once, from inside if no webhook has to be
  /// called. `row` must outlive the call.
  virtual void convert(const Resource& row, std::vector<ObjectPtr> objects, Of of, Converted done) = 0;
  /// Converts a document that is not stored yet.
  virtual void convert(const Resource& row, api::Json document, DocumentConverted done) = 0;
};

}  // namespace spillway::apiserver
