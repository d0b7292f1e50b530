#include "apiserver/aggregation/availability.h"

#include "apiserver/collect/bootstrap.h"
#include "apiserver/resource/object_condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kAvailable = "Available";
constexpr std::size_t kAnswerBytesMax = std::size_t{4} << 20U;

Availability local() {
  return {.status = "True", .reason = "Local", .message = "Local APIServices are always available"};
}

/// The condition in an object; nullopt: it has none.
std::optional<Availability> recorded_in(const Json& object) {
  const Json* list = object.at({"status", "conditions"});
  if (list == nullptr || list->if_array() == nullptr) return std::nullopt;
  for (const Json& condition : *list->if_array()) {
    if (condition.string_at({"type"}) != kAvailable) continue;
    return Availability{.status = std::string(condition.string_at({"status"})),
                        .reason = std::string(condition.string_at({"reason"})),
                        .message = std::string(condition.string_at({"message"}))};
  }
  return std::nullopt;
}

/// False of a change of the status alone, which is mostly this controller's own.
bool has_other_spec(const StoredObject& before, const StoredObject& now) {
  const Json one = before.document();
  const Json other = now.document();
  const Json* left = one.find("spec");
  const Json* right = other.find("spec");
  return before.meta.uid != now.meta.uid || left == nullptr || right == nullptr || !(*left == *right);
}

bool is_of_service(const StoredObject& object, const RemoteApi& api) {
  return object.ns == api.service_ns && object.name == api.service_name;
}

}  // namespace

ApiAvailability::ApiAvailability(Core& core, Writer& writer, RemoteFetch& fetch, const RemoteApis& apis)
    : core_(core),
      writer_(writer),
      fetch_(fetch),
      remote_(apis),
      apis_(core.cache.of(core.registry.get("apiservices.apiregistration.k8s.io"))),
      services_(core.cache.of(core.registry.get("services"))),
      endpoints_(core.cache.of(core.registry.get("endpoints"))) {}

void ApiAvailability::load() {
  due_.clear();
  failures_.clear();
  if (!fetch_.reaches()) return;
  for (const auto& [name, object] : apis_.objects()) due_.insert(name);
  if (!std::exchange(is_timed_, true)) core_.timers.at(core_.now.mono + kResync, [this] { resync(); });
}

void ApiAvailability::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (!fetch_.reaches()) return;
  const StoredObject& object = event->object ? *event->object : *event->previous;
  if (&cache == &apis_) {
    if (!event->object) {
      failures_.erase(object.name);
    } else if (!event->previous || has_other_spec(*event->previous, object)) {
      due_.insert(object.name);
    }
    return;
  }
  if (&cache != &services_ && &cache != &endpoints_) return;
  for (const RemoteApiPtr& api : remote_.all()) {
    if (is_of_service(object, *api)) due_.insert(api->name);
  }
}

void ApiAvailability::act() {
  while (!due_.empty() && checks_.size() < kChecksMax) {
    const std::string name = *due_.begin();
    due_.erase(due_.begin());
    check(name);
  }
}

void ApiAvailability::resync() {
  core_.timers.at(core_.now.mono + kResync, [this] { resync(); });
  if (!acts()) return;
  for (const RemoteApiPtr& api : remote_.all()) due_.insert(api->name);
  act();
}

void ApiAvailability::check(const std::string& name) {
  if (const auto under_way = checks_.find(name); under_way != checks_.end()) {
    under_way->second.again = true;
    return;
  }
  const ObjectPtr object = apis_.find(name);
  if (!object) return;
  const Json document = object->document();
  const auto api = remote_api(document);
  if (!api) {
    if (recorded_in(document) != local()) write(name, object->meta.uid, local());
    return;
  }
  checks_.emplace(name, Check{.uid = object->meta.uid, .api = *api, .until = core_.now.mono + kCheckMax});
  if (const auto problem = service_problem(core_, *api)) return finish(name, *problem);
  ask(name);
}

/// Sends one check to the server. Each try may reach another pod.
void ApiAvailability::ask(const std::string& name) {
  Check& check = checks_.at(name);
  ++check.tries;
  const Result<AggregatedServer> server = server_of(core_, check.api);
  if (!server) {
    return finish(name, {.status = "False", .reason = "FailedDiscoveryCheck", .message = server.error().text()});
  }
  const std::string target = path_of(check.api);
  fetch_.get({.server = *server,
              .target = target,
              .bytes_max = kAnswerBytesMax,
              .time_max = std::min(kTryMax, check.until - core_.now.mono)},
             [this, name, url = server->url() + target](const Result<api::Response>& answer) {
               on_answer(name, url, answer);
             });
}

void ApiAvailability::on_answer(const std::string& name, const std::string& url, const Result<api::Response>& answer) {
  constexpr int kOk = 200;
  constexpr int kRedirect = 300;
  Check& check = checks_.at(name);
  std::string why;
  if (!answer) {
    why = fmt::format("failing or missing response from {}: Get \"{}\": {}", url, url, answer.error().text());
  } else if (answer->status < kOk || answer->status >= kRedirect) {
    why = fmt::format("failing or missing response from {}: bad status from {}: {}", url, url, answer->status);
  }
  if (why.empty()) {
    return finish(name, {.status = "True", .reason = "Passed", .message = "all checks passed"});
  }
  const bool may_try = check.tries < kTriesMax && core_.now.mono < check.until;
  if (may_try) return ask(name);
  finish(name, {.status = "False", .reason = "FailedDiscoveryCheck", .message = std::move(why)});
}

/// Writes the condition if it differs from the one in the APIService.
void ApiAvailability::finish(const std::string& name, const Availability& found) {
  const std::string uid = checks_.at(name).uid;
  const ObjectPtr object = apis_.find(name);
  const bool is_there = object && object->meta.uid == uid;
  if (is_there && recorded_in(object->document()) != found) write(name, uid, found);
  end(name, is_there && found.status != "True");
}

void ApiAvailability::write(const std::string& name, const std::string& uid, const Availability& found) {
  if (!acts()) return;
  UpdateJob job{.resource = &apis_.resource(),
                .name = name,
                .part = SubresourceId::kStatus,
                .change = [this, found](Json current) -> StatusResult<Json> {
                  set_condition(current, kAvailable, found.status, found.reason, found.message, core_.now.wall);
                  return current;
                },
                .uid = uid,
                .trusted = true,
                .context = {server_user(), {}, false}};
  writer_.update(std::move(job), [this, name](const StatusResult<Written>& result) { on_written(name, result); });
}

void ApiAvailability::on_written(const std::string& name, const StatusResult<Written>& result) {
  const bool is_done = result || result.error().code == 404 || result.error().code == 409;
  if (!is_done) check_later(name, kRetryMin);
}

void ApiAvailability::end(const std::string& name, bool has_failed) {
  const bool again = checks_.at(name).again;
  checks_.erase(name);
  if (has_failed) {
    const int failures = std::min(failures_[name]++, 4);
    check_later(name, std::min(kRetryMin * (1 << failures), kRetryMax));
  } else {
    failures_.erase(name);
  }
  if (again) due_.insert(name);
  if (acts()) act();
}

void ApiAvailability::check_later(const std::string& name, Duration wait) {
  if (!waiting_.insert(name).second) return;
  core_.timers.at(core_.now.mono + wait, [this, name] {
    waiting_.erase(name);
    if (!acts()) return;
    due_.insert(name);
    act();
  });
}

}  // namespace spillway::apiserver
