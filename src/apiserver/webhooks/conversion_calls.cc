#include "apiserver/webhooks/conversion_calls.h"

#include "apiserver/resource/metadata_rules.h"
#include "apiserver/webhooks/webhook_address.h"
#include "policy/webhooks/conversion_review.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;

Status conversion_failure(std::string_view kind, std::string_view why) {
  return make_error(ErrorCode::kInternalError, "conversion webhook for {} {}", kind, why);
}

/// The kind of a request as Kubernetes prints it: "stable.example.com/v1, Kind=CronTabList".
std::string kind_text(const Resource& row, std::string_view version, ObjectConverter::Of of) {
  return fmt::format("{}, Kind={}", version, of == ObjectConverter::Of::kList ? row.list_kind : row.kind);
}

/// The webhook of the kind in the form in which addresses are found.
webhooks::Webhook webhook_of(const CustomKind& kind) {
  const Json configuration = Json::object(
      {{"metadata", Json::object({{"name", kind.name()}})},
       {"webhooks",
        Json::array({Json::object({{"name", kind.name()}, {"clientConfig", kind.webhook()->client_config}})})}});
  webhooks::Webhook webhook = webhooks::webhooks_of(webhooks::Phase::kMutating, configuration).front();
  webhook.timeout = ConversionCalls::kCallTime;
  return webhook;
}

/// An object of an answer, checked against the one that was sent, in the form of `row`.
StatusResult<Json> checked(const Resource& row, const Json& original, Json converted, ObjectConverter::Of of,
                           std::size_t index) {
  const bool of_list = of == ObjectConverter::Of::kList;
  const std::string kind = kind_text(row, original.string_at({"apiVersion"}), of);
  const std::string subject = of_list ? fmt::format("returned invalid converted object at index {}", index + 1)
                                      : std::string("returned invalid object at index 0");
  const std::string_view version = converted.string_at({"apiVersion"});
  if (!converted.is_object()) return conversion_failure(kind, subject + ": it is no JSON object");
  if (version != row.custom->api_version) {
    return conversion_failure(kind, fmt::format("{}: invalid groupVersion (expected {}, received {})", subject,
                                                row.custom->api_version, version));
  }
  if (const std::string_view named = converted.string_at({"kind"}); named != original.string_at({"kind"})) {
    return conversion_failure(
        kind, fmt::format("{}: invalid kind (expected {}, received {})", subject, original.string_at({"kind"}), named));
  }
  if (const Outcome same = webhooks::check_converted(original, converted); !same) {
    return conversion_failure(
        kind, fmt::format("{}: {}", of_list ? subject : "returned invalid object", same.error().message));
  }
  const std::string metadata = of_list ? fmt::format("returned invalid metadata in object at index {}", index + 1)
                                       : std::string("returned invalid metadata");
  const Result<bool> changed = webhooks::restore_metadata(original, converted);
  if (!changed) return conversion_failure(kind, fmt::format("{}: {}", metadata, changed.error().message));
  if (*changed) {
    api::FieldErrors errors;
    validate_any_metadata(converted, errors);
    if (!errors.empty()) {
      const api::FieldError& first = errors.errors().front();
      return conversion_failure(kind, fmt::format("{}: {}: {}", metadata, first.field, first.message));
    }
  }
  return row.custom->kind->at_rest(std::move(converted));
}

/// `object` with another document, which has its revision; an object that was only imagined may have none.
ObjectPtr with_document(const Resource& row, const StoredObject& object, Json document) {
  Extract meta = extract(row, document);
  std::shared_ptr<StoredObject> made;
  if (document.at({"metadata", "resourceVersion"}) == nullptr) {
    made = std::make_shared<StoredObject>();
    made->key = object.key;
    made->ns = object.ns;
    made->name = object.name;
    made->revision = object.revision;
    made->text = std::make_shared<const std::string>(api::to_text(document));
    made->meta = std::move(meta);
  } else {
    made = make_object(object.key, to_stored_text(document), object.revision, std::move(meta));
  }
  made->created = object.created;
  return made;
}

}  // namespace

ConversionCalls::~ConversionCalls() {
  for (const auto& [id, batch] : calls_) caller_->cancel(id);
}

/// The object is held for as long as the key is used, so its address is its name: a dry run makes other objects of the
/// same revision. A changed definition makes other results.
std::string ConversionCalls::key_of(const Resource& row, const ObjectPtr& object) {
  return fmt::format("{}\n{:x}\n{}", row.custom->api_version, row.custom->kind->digest(), fmt::ptr(object.get()));
}

ObjectPtr ConversionCalls::found(const std::string& key) const {
  const auto at = kept_.find(key);
  return at == kept_.end() ? nullptr : at->second.converted;
}

std::size_t ConversionCalls::bytes_of(const Kept& kept) {
  return kept.original->text->size() + kept.converted->text->size();
}

void ConversionCalls::keep(const std::string& key, Kept result) {
  const auto [at, is_new] = kept_.emplace(key, std::move(result));
  if (!is_new) return;
  kept_order_.push_back(key);
  kept_bytes_ += bytes_of(at->second);
  while (kept_bytes_ > kKeptBytesMax) {
    const auto oldest = kept_.find(kept_order_.front());
    kept_bytes_ -= bytes_of(oldest->second);
    kept_.erase(oldest);
    kept_order_.pop_front();
  }
}

void ConversionCalls::convert(const Resource& row, std::vector<ObjectPtr> objects, Of of, Converted done) {
  auto request = std::make_shared<Request>(Request{std::move(objects), 0, std::move(done)});
  std::vector<BatchPtr> batches;
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < request->objects.size(); ++i) {
    ObjectPtr& object = request->objects[i];
    if (!object || !needs_webhook(row, *object)) continue;
    std::string key = key_of(row, object);
    if (ObjectPtr known = found(key)) {
      object = std::move(known);
      continue;
    }
    ++request->open;
    auto& waiters = waiting_[key];
    waiters.push_back({request, i});
    if (waiters.size() > 1) continue;  // the call is in flight already
    const std::size_t more = object->text->size();
    bytes += more;
    ++count;
    if (batches.empty() || batches.back()->bytes + more > kBatchBytes) {
      batches.push_back(std::make_shared<Batch>());
      batches.back()->kind = row.custom->kind->shared_from_this();
      batches.back()->row = &batches.back()->kind->row_of(*row.custom);
      batches.back()->of = of;
    }
    Batch& batch = *batches.back();
    batch.objects.push_back(object);
    batch.keys.push_back(std::move(key));
    batch.bytes += more;
  }
  if (request->open == 0) return request->done(std::move(request->objects));
  const bool is_too_long = bytes > kRequestBytesMax || count > kObjectsMax;
  const bool is_too_much = queue_.size() + batches.size() > kWaitingMax;
  for (BatchPtr& batch : batches) {
    if (is_too_long || is_too_much) {
      fail_soon(batch, is_too_long ? "failed: the request has too many objects of another version"
                                   : "failed: too many conversions are waiting");
    } else {
      queue_.push_back(std::move(batch));
    }
  }
  start_waiting();
}

void ConversionCalls::convert(const Resource& row, Json document, DocumentConverted done) {
  if (!has_webhook(row) || !row.custom->needs_webhook(document.string_at({"apiVersion"}))) {
    return done(std::move(document));
  }
  auto batch = std::make_shared<Batch>();
  batch->kind = row.custom->kind->shared_from_this();
  batch->row = &batch->kind->row_of(*row.custom);
  auto object = std::make_shared<StoredObject>();
  object->text = std::make_shared<const std::string>(api::to_text(document));
  batch->bytes = object->text->size();
  batch->objects.push_back(std::move(object));
  batch->document_done = std::move(done);
  if (queue_.size() >= kWaitingMax) return fail_soon(batch, "failed: too many conversions are waiting");
  queue_.push_back(std::move(batch));
  start_waiting();
}

/// Starts the calls for which there is room, oldest first; a kind whose webhook is slow holds up no other one.
void ConversionCalls::start_waiting() {
  for (auto at = queue_.begin(); at != queue_.end();) {
    const BatchPtr batch = *at;
    const bool is_first = calls_.empty();
    if (!is_first && call_bytes_ + batch->bytes > kCallBytesMax) return;
    const auto open = open_.find(batch->kind->name());
    if (open != open_.end() && open->second >= kCallsOfKind) {
      ++at;
      continue;
    }
    at = queue_.erase(at);
    call(batch);
  }
}

void ConversionCalls::fail_soon(const BatchPtr& batch, std::string why) {
  core_.timers.at(core_.now.mono, [this, batch, why = std::move(why)] {
    const Json original = batch->objects.front()->document();
    end(*batch, conversion_failure(kind_text(*batch->row, original.string_at({"apiVersion"}), batch->of), why));
  });
}

void ConversionCalls::call(const BatchPtr& batch) {
  const webhooks::Webhook webhook = webhook_of(*batch->kind);
  batch->url = shown_url(webhook);
  if (caller_ == nullptr) {
    return fail_soon(batch, fmt::format("failed: Post \"{}\": this server calls no webhooks", batch->url));
  }
  Result<WebhookCall> call = call_of(core_, webhook);
  if (!call) return fail_soon(batch, fmt::format("failed: Post \"{}\": {}", batch->url, call.error().text()));
  const std::uint64_t id = ++last_;
  batch->uid = new_uid(core_.rng);
  std::vector<std::string_view> texts;
  for (const ObjectPtr& object : batch->objects) texts.emplace_back(*object->text);
  call->body = webhooks::conversion_text({.review_version = batch->kind->webhook()->review_version,
                                          .uid = batch->uid,
                                          .wanted_version = batch->row->custom->api_version,
                                          .objects = texts});
  batch->timer = core_.timers.at(core_.now.mono + kCallTime, [this, id] {
    caller_->cancel(id);
    finish(id, make_error(ErrorCode::kTimeout, "context deadline exceeded"));
  });
  calls_.emplace(id, batch);
  ++open_[std::string(batch->kind->name())];
  call_bytes_ += batch->bytes;
  // Cancelled calls have no callback, so the callback does not outlive this object.
  caller_->call(id, *std::move(call),
                [this, id](const Result<api::Response>& response, Now now) { on_answer(id, response, now); });
}

void ConversionCalls::on_answer(std::uint64_t id, const Result<api::Response>& response, Now now) {
  core_.now = now;
  core_.cache.set_time(now.mono);
  finish(id, response);
}

void ConversionCalls::finish(std::uint64_t id, const Result<api::Response>& response) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  const BatchPtr batch = std::move(found->second);
  calls_.erase(found);
  core_.timers.cancel(batch->timer);
  call_bytes_ -= batch->bytes;
  const auto open = open_.find(batch->kind->name());
  if (--open->second == 0) open_.erase(open);
  const std::string kind =
      kind_text(*batch->row, batch->objects.front()->document().string_at({"apiVersion"}), batch->of);
  if (!response) {
    end(*batch, conversion_failure(kind, fmt::format("failed: Post \"{}\": {}", batch->url, response.error().text())));
  } else if (!response->ok()) {
    end(*batch, conversion_failure(kind, fmt::format("failed: {}", refusal_text(*response))));
  } else if (auto objects =
                 webhooks::read_conversion(batch->kind->webhook()->review_version, batch->uid, response->body);
             !objects) {
    end(*batch, conversion_failure(kind, fmt::format("failed: {}", objects.error().message)));
  } else if (objects->size() != batch->objects.size()) {
    end(*batch, conversion_failure(
                    kind, fmt::format("returned {} objects, expected {}", objects->size(), batch->objects.size())));
  } else {
    end(*batch, *std::move(objects));
  }
  start_waiting();
}

void ConversionCalls::end(Batch& batch, StatusResult<std::vector<Json>> converted) {
  if (!converted) {
    core_.log.warning("a conversion webhook failed",
                      {{"definition", batch.kind->name()}, {"why", converted.error().message}});
  }
  if (batch.document_done) {
    auto done = std::move(batch.document_done);
    if (!converted) return done(converted.error());
    const Json original = batch.objects.front()->document();
    return done(checked(*batch.row, original, std::move(converted->front()), batch.of, 0));
  }
  for (std::size_t i = 0; i < batch.keys.size(); ++i) {
    if (!converted) {
      deliver(batch.keys[i], converted.error());
      continue;
    }
    const StoredObject& object = *batch.objects[i];
    StatusResult<Json> document = checked(*batch.row, object.document(), std::move((*converted)[i]), batch.of, i);
    if (!document) {
      deliver(batch.keys[i], document.error());
      continue;
    }
    const ObjectPtr made = with_document(*batch.row, object, *std::move(document));
    keep(batch.keys[i], {batch.objects[i], made});
    deliver(batch.keys[i], made);
  }
}

void ConversionCalls::deliver(const std::string& key, const StatusResult<ObjectPtr>& object) {
  const auto waiting = waiting_.extract(key);
  if (waiting.empty()) return;
  for (const Waiter& waiter : waiting.mapped()) {
    Request& request = *waiter.request;
    if (!request.done) continue;  // already failed
    if (!object) {
      std::exchange(request.done, nullptr)(object.error());
      continue;
    }
    request.objects[waiter.place] = *object;
    if (--request.open == 0) std::exchange(request.done, nullptr)(std::move(request.objects));
  }
}

}  // namespace spillway::apiserver
