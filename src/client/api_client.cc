#include "client/api_client.h"

#include "base/check.h"
#include "base/number.h"
#include "client/informer.h"

#include <algorithm>
#include <chrono>

namespace spillway::client {
namespace {

std::string_view content_type(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategicMerge:
      return "application/strategic-merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return {};
}

/// Other text may be malformed; the server reports that when it parses it.
bool is_ascii(std::string_view text) {
  unsigned char bits = 0;  // the union of all characters, so that the loop has no branch and can be vectorised
  for (const char c : text) bits |= static_cast<unsigned char>(c);
  return bits < 0x80;
}

bool says_ascii(const api::Json& value) {
  if (const std::string* text = value.if_string()) return is_ascii(*text);
  if (const auto* items = value.if_array()) return std::ranges::all_of(*items, says_ascii);
  if (const auto* members = value.if_object()) {
    for (const auto& [key, member] : *members)
      if (!is_ascii(key) || !says_ascii(member)) return false;
  }
  return true;
}

/// Checks a heartbeat beside its metadata, which a server has answered with, so that it was checked there. Annotations
/// are written by our own election, too, and are checked.
bool says_ascii_beside_metadata(const api::Json::Object& object) {
  for (const auto& [key, member] : object) {
    const bool is_answered =
        key == "metadata" && member.find("uid") != nullptr && member.find("annotations") == nullptr;
    if (!is_answered && (!is_ascii(key) || !says_ascii(member))) return false;
  }
  return true;
}

/// A heartbeat is sent without its text: a server in the same process compares the document with the stored one, and a
/// transport makes the text where bytes leave the process.
bool needs_no_text(api::Method method, const api::Json& document) {
  const bool is_lease = method == api::Method::kPut && document.string_at({"kind"}) == "Lease";
  return is_lease && says_ascii_beside_metadata(*document.if_object());
}

Result<api::Json> outcome_of(const Result<api::Response>& response) {
  if (!response) return response.error();
  if (!response->ok()) return error_of_answer(response->status, response->body);
  if (response->document) return *response->document;
  if (response->body.empty()) return api::Json();
  auto document = api::parse_json(response->body);
  if (!document) return make_error(ErrorCode::kInternalError, "answer is not JSON: {}", document.error().message);
  return *std::move(document);
}

/// The longest wait that an answer may demand. A longer one would hold a decision for a server that may be well again.
constexpr Duration kRetryAfterMax = minutes(1);

/// Retry-After in seconds, of an answer that may be another one then.
std::optional<Duration> wait_asked_for(const Result<api::Response>& response) {
  if (!response || (response->status != 429 && response->status < 500)) return std::nullopt;
  const std::string_view text = response->header("retry-after");
  const auto wait = parse_whole<std::uint16_t>(text);
  if (!wait) return std::nullopt;
  return std::min<Duration>(seconds(*wait), kRetryAfterMax);
}

}  // namespace

ApiClient::ApiClient(std::string user_agent, Rng rng) : ApiClient(std::move(user_agent), rng, Limits{}) {}

ApiClient::ApiClient(std::string user_agent, Rng rng, Limits limits)
    : user_agent_(std::move(user_agent)), rng_(rng), limits_(limits), last_id_(limits.ids_above) {
  if (const auto& rate = limits_.write_rate) {
    write_bucket_.emplace(BucketKind::kContinuous, rate->per_second, rate->burst, Instant{});
  }
}

void ApiClient::get(std::string path, Done done) {
  call(api::Method::kGet, std::move(path), {}, nullptr, std::move(done));
}

void ApiClient::create(std::string collection_path, api::Json object, Done done) {
  call(api::Method::kPost, std::move(collection_path), "application/json", std::move(object), std::move(done));
}

void ApiClient::update(std::string path, api::Json object, Done done) {
  call(api::Method::kPut, std::move(path), "application/json", std::move(object), std::move(done));
}

void ApiClient::patch(std::string path, PatchType type, api::Json patch, Done done) {
  call(api::Method::kPatch, std::move(path), content_type(type), std::move(patch), std::move(done));
}

void ApiClient::remove(std::string path, api::Json options, Done done) {
  call(api::Method::kDelete, std::move(path), "application/json", std::move(options), std::move(done));
}

void ApiClient::call(api::Method method, std::string target, std::string_view content_type, api::Json document,
                     Done done) {
  api::Request request{method, std::move(target), {{"accept", "application/json"}, {"user-agent", user_agent_}}, {}};
  if (!document.is_null()) {
    request.headers.emplace_back("content-type", content_type);
    const bool document_alone = needs_no_text(method, document);
    if (!document_alone) request.body = api::to_text(document);
    if (document_alone || is_ascii(request.body))
      request.document = std::make_shared<const api::Json>(std::move(document));
  }
  attempt(std::move(request), 0, std::move(done));
}

void ApiClient::attempt(api::Request request, int tries, Done done) {
  const bool last = tries >= limits_.retries_max;
  auto again = last ? nullptr : std::make_shared<const api::Request>(request);
  send(std::move(request), [this, again, tries, done = std::move(done)](const CallDone& answer, Now now) {
    const auto wait = again ? wait_asked_for(answer.response) : std::nullopt;
    if (wait) {
      at(now.mono + *wait, [this, again, tries, done](Now) { attempt(*again, tries + 1, done); });
    } else if (done) {
      done(outcome_of(answer.response), now);
    }
  });
}

CallId ApiClient::send(api::Request request, std::function<void(const CallDone&, Now)> done) {
  const CallId id = ++last_id_;
  auto& lane = request.method == api::Method::kGet ? reads_waiting_ : writes_waiting_;
  if (lane.size() < limits_.waiting_max) {
    lane.push_back({id, std::move(request), std::move(done), now_.mono});
    pump();
  } else {
    at(now_.mono, [id, done = std::move(done)](Now now) {
      done({id, make_error(ErrorCode::kTooManyRequests, "too many calls are waiting to be sent")}, now);
    });
  }
  return id;
}

void ApiClient::pump() {
  while (!reads_waiting_.empty() && in_flight_.size() < limits_.in_flight_max) {
    Waiting next = std::move(reads_waiting_.front());
    reads_waiting_.pop_front();
    transmit(std::move(next), std::nullopt);
  }
  while (!writes_waiting_.empty() && in_flight_.size() < limits_.in_flight_max) {
    if (write_bucket_ && !write_bucket_->try_take(now_.mono)) return;
    Waiting next = std::move(writes_waiting_.front());
    writes_waiting_.pop_front();
    const Duration waited = now_.mono - next.since;
    transmit(std::move(next), write_bucket_ ? std::optional(waited) : std::nullopt);
  }
}

void ApiClient::transmit(Waiting next, std::optional<Duration> rate_limited_for) {
  Call& call = in_flight_[next.id];
  call.done = std::move(next.done);
  if (inside_) {
    call.deadline = now_.mono + limits_.call_timeout;
    deadlines_.emplace(*call.deadline, next.id);
  } else {
    undated_.push_back(next.id);
  }
  commands_.push_back(SendCall{next.id, std::move(next.request), rate_limited_for});
}

CallId ApiClient::open_watch(std::string target, InformerBase& informer) {
  const CallId id = ++last_id_;
  watches_[id] = &informer;
  commands_.push_back(OpenWatch{
      id, {api::Method::kGet, std::move(target), {{"accept", "application/json"}, {"user-agent", user_agent_}}, {}}});
  return id;
}

void ApiClient::close_watch(CallId id) {
  if (watches_.erase(id) > 0) commands_.push_back(CloseWatch{id});
}

ApiClient::TimerId ApiClient::at(Instant due, std::function<void(Now)> action) {
  const TimerId id = ++last_timer_;
  timers_.emplace(std::pair(due, id), std::move(action));
  timer_due_.emplace(id, due);
  return id;
}

void ApiClient::cancel(TimerId timer) {
  const auto it = timer_due_.find(timer);
  if (it == timer_due_.end()) return;
  timers_.erase({it->second, timer});
  timer_due_.erase(it);
}

void ApiClient::add(InformerBase& informer) {
  informers_.push_back(&informer);
  if (started_) at(now_.mono, [&informer](Now now) { informer.list(now); });  // the informer may not be complete yet
}

bool ApiClient::synced() const {
  return started_ && std::ranges::all_of(informers_, [](const InformerBase* each) { return each->synced(); });
}

void ApiClient::when_synced(std::function<void(Now)> action) {
  if (synced() && on_synced_.empty() && inside_) {
    action(now_);
  } else {
    on_synced_.push_back(std::move(action));
  }
}

void ApiClient::enter(Now now) {
  now_ = now;
  inside_ = true;
  for (const CallId id : undated_) {
    const auto it = in_flight_.find(id);
    if (it == in_flight_.end()) continue;
    it->second.deadline = now.mono + limits_.call_timeout;
    deadlines_.emplace(*it->second.deadline, id);
  }
  undated_.clear();
}

void ApiClient::exit(Now now) {
  pump();
  if (!on_synced_.empty() && synced()) {
    for (const auto& action : std::exchange(on_synced_, {})) action(now);
  }
  inside_ = false;
}

void ApiClient::start(Now now) {
  SPILLWAY_CHECK(!started_);
  enter(now);
  started_ = true;
  for (InformerBase* informer : informers_) informer->list(now);
  exit(now);
}

void ApiClient::on_api_event(const ApiEvent& event, Now now) {
  enter(now);
  if (const auto* answer = std::get_if<CallDone>(&event)) {
    if (const auto it = in_flight_.find(answer->id); it != in_flight_.end()) {
      const Call call = std::move(it->second);
      in_flight_.erase(it);
      if (call.deadline) deadlines_.erase({*call.deadline, answer->id});
      call.done(*answer, now);
    }
  } else if (const auto* frame = std::get_if<WatchFrame>(&event)) {
    if (const auto it = watches_.find(frame->id); it != watches_.end()) it->second->on_frame(*frame, now);
  } else if (const auto* end = std::get_if<WatchEnded>(&event)) {
    if (const auto it = watches_.find(end->id); it != watches_.end()) {
      InformerBase* informer = it->second;
      watches_.erase(it);
      informer->on_end(*end, now);
    }
  }
  exit(now);
}

void ApiClient::expire(Now now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now.mono) {
    const CallId id = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    const auto it = in_flight_.find(id);
    SPILLWAY_CHECK(it != in_flight_.end());
    const Call call = std::move(it->second);
    in_flight_.erase(it);
    const auto waited = std::chrono::duration_cast<milliseconds>(limits_.call_timeout);
    call.done({id, make_error(ErrorCode::kTimeout, "no answer within {} ms", waited.count())}, now);
  }
}

void ApiClient::on_wakeup(Now now) {
  enter(now);
  expire(now);
  const TimerId newest = last_timer_;  // timers set meanwhile wait for the next wake-up, so this ends
  for (auto it = timers_.begin(); it != timers_.end() && it->first.first <= now.mono;) {
    if (it->first.second > newest) {
      ++it;
      continue;
    }
    const auto action = std::move(it->second);
    const auto key = it->first;
    timer_due_.erase(key.second);
    timers_.erase(it);
    action(now);
    it = timers_.upper_bound(key);  // the action may have set or cancelled any
  }
  exit(now);
}

std::optional<Instant> ApiClient::next_wakeup() const {
  std::optional<Instant> next;
  const auto consider = [&next](Instant due) {
    if (!next || due < *next) next = due;
  };
  if (!timers_.empty()) consider(timers_.begin()->first.first);
  if (!deadlines_.empty()) consider(deadlines_.begin()->first);
  if (!undated_.empty()) consider(now_.mono);
  if (write_bucket_ && !writes_waiting_.empty() && in_flight_.size() < limits_.in_flight_max) {
    if (const auto grant = write_bucket_->next_grant(now_.mono)) consider(*grant);
  }
  return next;
}

std::vector<ApiCommand> ApiClient::take_api_commands() {
  return std::exchange(commands_, {});
}

}  // namespace spillway::client
