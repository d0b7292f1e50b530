// vectors/pod-lifecycle: image_pull, image_credentials, pleg_traces.
#include "agent/cri/image_credentials.h"
#include "agent/cri/image_name.h"
#include "agent/cri/image_pull.h"
#include "agent/cri/lifecycle_events.h"
#include "api/codec/codec.h"
#include "support/vectors.h"

#include <algorithm>
#include <set>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

Instant instant_at(const Json& step) {
  return Instant{} +
         std::chrono::duration_cast<Duration>(std::chrono::duration<double>(step.find("at")->if_double().value()));
}

Error said(std::string_view message) {
  return {ErrorCode::kInternalError, std::string(message), {}};
}

/// Runs one step: returns the answer, and whether an image was pulled.
Json run_pull(ImagePulls& pulls, const ImageWanted& wanted, const Json& step) {
  const Instant now = instant_at(step);
  std::vector<ImageNews> news;
  Json made = Json::object({{"pulled", false}});
  const auto keep = [&](ImageAnswer answer) {
    std::ranges::move(answer.news, std::back_inserter(news));
    return answer.what;
  };
  std::optional<ImageAnswer> known = pulls.begin(wanted, now);
  if (!known) {
    const Json* error = step.find("inspectError");
    const bool present = step.find("present")->if_bool().value();
    const Result<std::string> status = error != nullptr
                                           ? Result<std::string>(said(error->string_at({})))
                                           : Result<std::string>(std::string(present ? "sha256:present" : ""));
    known = pulls.on_status(wanted, status, now);
  }
  auto what = keep(*std::move(known));
  if (const auto* pull = std::get_if<ImageToPull>(&what)) {
    made["pulled"] = true;
    made["pullRef"] = pull->name;
    const Json* error = step.find("pullError");
    const Result<PulledImage> pulled =
        error != nullptr ? Result<PulledImage>(said(error->string_at({})))
                         : Result<PulledImage>(PulledImage{.ref = "sha256:pulled", .size_bytes = 4096});
    what = keep(pulls.on_pulled(wanted, pulled, now));
  }
  if (const auto* present = std::get_if<ImagePresent>(&what)) made["imageRef"] = present->ref;
  if (const auto* refusal = std::get_if<ImageRefusal>(&what)) {
    made["reason"] = refusal->reason;
    made["message"] = refusal->message;
  }
  Json& events = made["events"] = Json::array();
  for (const ImageNews& each : news) {
    std::string message = each.message;
    if (const auto at = message.find(" in 0s (0s including"); at != std::string::npos)
      message.replace(at, 20, " in DURATION (DURATION including");
    events.if_array()->emplace_back(fmt::format(
        "{} {} {}", each.weight == PodNotice::Weight::kWarning ? "Warning" : "Normal", each.reason, message));
  }
  return made;
}

std::optional<Mismatch> image_pull(const Json& row) {
  const Json& in = *row.find("in");
  const ImageWanted wanted{"u1", std::string(in.string_at({"image"})), std::string(in.string_at({"policy"}))};
  ImagePulls pulls;
  Json got = Json::array();
  for (const Json& step : *in.find("steps")->if_array()) got.if_array()->push_back(run_pull(pulls, wanted, step));
  return support::compare(*row.find("want"), got);
}

std::optional<Mismatch> image_credentials(const Json& row) {
  const Json& in = *row.find("in");
  std::vector<PullSecret> secrets;
  if (const Json* given = in.find("secrets"); given != nullptr && given->if_array() != nullptr)
    for (const Json& each : *given->if_array())
      secrets.push_back({std::string(each.string_at({"type"})), std::string(each.string_at({"data"}))});
  const auto name = parse_image_name(in.string_at({"image"}));
  if (!name) return Mismatch{"a name", name.error().message};
  const auto made = credentials_for(name->repository, secrets);
  const Json& want = *row.find("want");
  if (want.find("error") != nullptr) {
    if (!made) return std::nullopt;
    return Mismatch{std::string(want.string_at({"error"})), "credentials"};
  }
  if (!made) return Mismatch{api::to_text(want), made.error().message};
  Json tries = Json::array();
  for (const ImageCredential& each : *made)
    tries.if_array()->push_back(
        Json::object({{"username", each.username}, {"password", each.password}, {"serverAddress", ""}}));
  return support::compare(
      want, Json::object({{"repository", name->repository}, {"tries", tries}, {"withCredentials", !made->empty()}}));
}

std::map<std::string, ListedPod> listed(const Json& step) {
  std::map<std::string, ListedPod> pods;
  for (const Json& pod : *step.find("pods")->if_array()) {
    ListedPod& made = pods[std::string(pod.string_at({"uid"}))];
    const auto add = [&](std::string_view member, std::vector<ListedPod::Item>& into) {
      for (const Json& each : *pod.find(member)->if_array()) {
        const std::string_view state = each.string_at({"state"});
        into.push_back({std::string(each.string_at({"id"})), state == "running"  ? ListedState::kRunning
                                                             : state == "exited" ? ListedState::kExited
                                                                                 : ListedState::kUnknown});
      }
    };
    add("containers", made.containers);
    add("sandboxes", made.sandboxes);
  }
  return pods;
}

std::string text_of(const LifecycleEvent& event) {
  constexpr std::string_view kNames[] = {"ContainerStarted", "ContainerDied", "ContainerRemoved", "ContainerChanged"};
  return fmt::format("{} {}", kNames[static_cast<int>(event.kind)], event.id);
}

Json run_list(LifecycleRecords& records, const Json& step) {
  const Instant now = instant_at(step);
  const auto problem = records.problem(now);
  Json made = Json::object({{"healthyBefore", !problem.has_value()}, {"events", Json::object()}});
  if (problem) made["healthError"] = *problem;
  std::set<std::string> failing;
  if (const Json* uids = step.find("statusFailsFor"); uids != nullptr && uids->if_array() != nullptr)
    for (const Json& each : *uids->if_array()) failing.emplace(each.string_at({}));
  const Json* fails = step.find("listFails");
  if (fails == nullptr || !fails->if_bool().value_or(false)) {
    for (const auto& [uid, events] : records.on_list(listed(step), now)) {
      const bool had = !failing.contains(uid) || records.is_gone(uid);
      records.on_inspected(uid, had);
      if (!had) continue;
      Json list = Json::array();
      for (const LifecycleEvent& each : events)
        if (each.kind != LifecycleEvent::Kind::kChanged) list.if_array()->emplace_back(text_of(each));
      if (!list.if_array()->empty()) made.make({"events", uid}) = std::move(list);
    }
  }
  Json& again = made["reinspect"] = Json::array();
  for (const std::string& uid : records.to_inspect()) again.if_array()->emplace_back(uid);
  return made;
}

std::optional<Mismatch> pleg_traces(const Json& row) {
  LifecycleRecords records;
  Json got = Json::array();
  for (const Json& step : *row.at({"in", "steps"})->if_array()) got.if_array()->push_back(run_list(records, step));
  return support::compare(*row.find("want"), got);
}

const bool kImagePull = support::add_vector_check("pod-lifecycle/image_pull", image_pull);
const bool kImageCredentials = support::add_vector_check("pod-lifecycle/image_credentials", image_credentials);
const bool kPlegTraces = support::add_vector_check("pod-lifecycle/pleg_traces", pleg_traces);

}  // namespace
}  // namespace spillway::agent
