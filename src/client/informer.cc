#include "client/informer.h"

#include "api/codec/codec.h"
#include "api/object/controller_revision.h"
#include "api/object/disruption_budget.h"
#include "api/object/endpoints.h"
#include "api/object/horizontal_autoscaler.h"
#include "api/object/job.h"
#include "api/object/named_service.h"
#include "api/object/proxied_service.h"
#include "api/object/replication_controller.h"
#include "api/object/service.h"
#include "api/object/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace spillway::client {
namespace {

constexpr std::uint64_t kPagesMax = 20'000;  // 10 million objects: a server that never ends a list is at fault
constexpr std::int64_t kWatchSecondsMin = 300;
constexpr std::uint64_t kWatchSecondsSpread = 300;
constexpr Duration kAfterSilenceMin = milliseconds(400);
constexpr std::uint64_t kAfterSilenceSpreadMs = 400;
constexpr Duration kShortWatch = seconds(5);  // a close before that counts as a failure unless data arrived

ObjectKey key_of_document(const api::Json& object) {
  const std::string_view ns = object.string_at({"metadata", "namespace"});
  const std::string_view name = object.string_at({"metadata", "name"});
  return ns.empty() ? ObjectKey(name) : fmt::format("{}/{}", ns, name);
}

}  // namespace

InformerBase::InformerBase(ApiClient& client, std::string collection_path, std::string query, Need need)
    : client_(client), path_(std::move(collection_path)), query_(std::move(query)), need_(need) {
  client_.add(*this);
}

void InformerBase::list(Now) {
  if (listing_) return;
  listing_ = true;
  ++lists_begun_;
  pages_ = 0;
  if (watch_) client_.close_watch(*std::exchange(watch_, std::nullopt));
  on_list_started();
  request_page({});
}

void InformerBase::request_page(const std::string& continue_token) {
  std::string target = fmt::format("{}?limit={}", path_, client_.limits_.list_page_objects);
  if (!continue_token.empty()) target += "&continue=" + api::percent_encode(continue_token);
  if (!query_.empty()) target += "&" + query_;
  client_.send(
      {api::Method::kGet, std::move(target), {{"accept", "application/json"}, {"user-agent", client_.user_agent_}}, {}},
      [this](const CallDone& answer, Now now) { on_page(answer, now); });
}

void InformerBase::on_page(const CallDone& answer, Now now) {
  const auto fail = [&](Error error) {
    listing_ = false;
    // While a server starts, it may refuse all requests: an optional list is requested once more when the required ones
    // have been read. A request without an answer changes nothing.
    const bool are_others_read = std::ranges::all_of(client_.informers(), [](const InformerBase* each) {
      return each->need() == Need::kOptional || each->synced();
    });
    const bool is_refused = error.code == ErrorCode::kForbidden || error.code == ErrorCode::kNotFound;
    if (is_refused && (need_ == Need::kRequired || are_others_read)) refusal_ = error;
    again(session_.on_end(std::move(error), client_.rng_), now);
  };
  if (!answer.response) return fail(answer.response.error());
  if (!answer.response->ok()) return fail(error_of_answer(answer.response->status, answer.response->body));
  const api::DocumentPtr& parsed = answer.response->document;
  const Result<api::Json> page = parsed ? Result<api::Json>(*parsed) : api::parse_json(answer.response->body);
  if (!page) return fail(make_error(ErrorCode::kInternalError, "list of {} is not JSON", path_));
  if (++pages_ > kPagesMax) return fail(make_error(ErrorCode::kInternalError, "list of {} does not end", path_));
  last_received_ = now.mono;
  const api::Json* items = page->find("items");
  if (items != nullptr && items->if_array() != nullptr) {
    for (const api::Json& item : *items->if_array()) on_put(item, nullptr, now);
  }
  const std::string_view token = page->string_at({"metadata", "continue"});
  if (!token.empty()) return request_page(std::string(token));
  listing_ = false;
  ++lists_;
  last_whole_list_ = lists_begun_;
  on_list_completed(now);
  session_.on_listed(std::string(page->string_at({"metadata", "resourceVersion"})));
  synced_ = true;
  refusal_.reset();
  watch(now);
}

void InformerBase::watch(Now now) {
  const auto timeout_seconds =
      kWatchSecondsMin + static_cast<std::int64_t>(client_.rng_.below(kWatchSecondsSpread + 1));
  std::string target = fmt::format("{}?allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}&watch=true", path_,
                                   api::percent_encode(session_.resource_version()), timeout_seconds);
  if (!query_.empty()) target += "&" + query_;
  watch_ = client_.open_watch(std::move(target), *this);
  watch_opened_ = now.mono;
  if (!silence_timer_armed_) arm_silence_timer(now.mono + client_.limits_.watch_silence);
}

/// One timer per informer, moved forward only when it fires: frames do not touch it.
void InformerBase::arm_silence_timer(Instant due) {
  silence_timer_armed_ = true;
  client_.at(due, [this](Now now) {
    silence_timer_armed_ = false;
    if (!watch_) return;
    const Instant received = last_received_ ? std::max(*last_received_, watch_opened_) : watch_opened_;
    const Instant limit = received + client_.limits_.watch_silence;
    if (now.mono < limit) return arm_silence_timer(limit);
    end_silence(now);
  });
}

/// Ends a silent watch and opens it again soon, however often the server failed before: the silence was a wait, and the
/// changes that it hid must be read soon.
void InformerBase::end_silence(Now now) {
  client_.close_watch(*std::exchange(watch_, std::nullopt));
  WatchSession::Next next =
      session_.on_end(make_error(ErrorCode::kTimeout, "watch of {} is silent", path_), client_.rng_);
  next.wait = kAfterSilenceMin + milliseconds(static_cast<std::int64_t>(client_.rng_.below(kAfterSilenceSpreadMs + 1)));
  again(next, now);
}

void InformerBase::abort_watch(Error error, Now now) {
  client_.close_watch(*std::exchange(watch_, std::nullopt));
  again(session_.on_end(std::move(error), client_.rng_), now);
}

void InformerBase::on_frame(const WatchFrame& frame, Now now) {
  if (watch_ != frame.id) return;
  if (frame.event) return on_event(frame.event->type, *frame.event->object, &frame.event->decoded, now);
  const auto event = api::parse_json(*frame.document);
  const api::Json* object = event ? event->find("object") : nullptr;
  if (object == nullptr) {
    return abort_watch(make_error(ErrorCode::kInternalError, "watch of {}: frame is not an event", path_), now);
  }
  on_event(event->string_at({"type"}), *object, nullptr, now);
}

void InformerBase::on_event(std::string_view type, const api::Json& object, std::any* decoded, Now now) {
  if (type == "ERROR") {
    const auto* code = object.find("code");
    const auto status = code != nullptr ? code->if_int64() : std::nullopt;
    const int http_status = status && *status >= 400 && *status < 600 ? static_cast<int>(*status) : 500;
    return abort_watch(error_of_answer(http_status, api::to_text(object)), now);
  }
  last_received_ = now.mono;
  if (type == "ADDED" || type == "MODIFIED") {
    on_put(object, decoded, now);
  } else if (type == "DELETED") {
    on_deleted(object, now);
  }
  if (const auto version = object.string_at({"metadata", "resourceVersion"}); !version.empty()) {
    session_.on_progress(std::string(version));
  }
}

void InformerBase::on_end(const WatchEnded& end, Now now) {
  if (watch_ != end.id) return;
  watch_.reset();
  const bool lived = now.mono - watch_opened_ >= kShortWatch;
  if (!end.error && lived) session_.on_progress(std::string(session_.resource_version()));
  again(session_.on_end(end.error, client_.rng_), now);
}

void InformerBase::again(const WatchSession::Next& next, Now now) {
  const auto go = [this, relist = next.relist](Now later) {
    if (relist) {
      list(later);
    } else {
      watch(later);
    }
  };
  if (next.wait > Duration::zero()) {
    client_.at(now.mono + next.wait, go);
  } else {
    go(now);
  }
}

ObjectKey key_of(const api::ObjectMeta& meta) {
  return meta.ns.empty() ? meta.name : meta.ns + "/" + meta.name;
}

template <typename T>
void Informer<T>::on_list_started() {
  collecting_ = true;
  listed_.clear();
}

template <typename T>
void Informer<T>::on_put(const api::Json& object, std::any* decoded, Now now) {
  ObjectKey key = key_of_document(object);
  const auto known = cache_.find(key);
  if (collecting_) listed_.insert(key);
  if (known && known->metadata.resource_version == object.string_at({"metadata", "resourceVersion"})) return;
  using Ptr = std::shared_ptr<const T>;
  if (const Ptr* known_value = decoded != nullptr ? std::any_cast<Ptr>(decoded) : nullptr) {
    return cache_.put(key, *known_value, now);
  }
  auto value = api::decode<T>(object);
  if (!value) {
    count_undecodable();
    return;
  }
  Ptr made = std::make_shared<const T>(*std::move(value));
  if (decoded != nullptr) *decoded = made;
  cache_.put(key, std::move(made), now);
}

template <typename T>
void Informer<T>::on_deleted(const api::Json& object, Now now) {
  cache_.erase(key_of_document(object), now);
}

template <typename T>
void Informer<T>::on_list_completed(Now now) {
  std::vector<ObjectKey> gone;
  for (const auto& [key, object] : cache_.all()) {
    if (!listed_.contains(key)) gone.push_back(key);
  }
  for (const ObjectKey& key : gone) cache_.erase(key, now);
  collecting_ = false;
  listed_.clear();
}

template class Informer<api::Pod>;
template class Informer<api::Node>;
template class Informer<api::Lease>;
template class Informer<api::Namespace>;
template class Informer<api::ProxiedService>;
template class Informer<api::Service>;
template class Informer<api::NamedService>;
template class Informer<api::Endpoints>;
template class Informer<api::EndpointSlice>;
template class Informer<api::Deployment>;
template class Informer<api::ReplicaSet>;
template class Informer<api::ReplicationController>;
template class Informer<api::DaemonSet>;
template class Informer<api::StatefulSet>;
template class Informer<api::ControllerRevision>;
template class Informer<api::Job>;
template class Informer<api::CronJob>;
template class Informer<api::HorizontalPodAutoscaler>;
template class Informer<api::PodDisruptionBudget>;
template class Informer<api::PriorityClass>;
template class Informer<api::PersistentVolume>;
template class Informer<api::PersistentVolumeClaim>;
template class Informer<api::StorageClass>;
template class Informer<api::CsiNode>;
template class Informer<api::VolumeAttachment>;

}  // namespace spillway::client
