// vectors/kubelet-surface: kubelet_authz, image_pull_reason.
#include "agent/cri/image_name.h"
#include "agent/cri/image_pull.h"
#include "agent/serving/node_access.h"
#include "api/text/duration.h"
#include "support/vectors.h"

#include <set>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

std::optional<Mismatch> kubelet_authz(const Json& row) {
  const Json& in = *row.find("in");
  const bool fine = in.find("gate_KubeletFineGrainedAuthz")->if_bool().value();
  const NodeAccess access = node_access(verb_of(api::parse_method(in.string_at({"method"}))), in.string_at({"path"}),
                                        fine ? FineGrained::kOn : FineGrained::kOff);
  Json got = Json::object({{"any_of", Json::array()}});
  for (const std::string& subresource : {access.subresource, access.fallback}) {
    if (subresource.empty()) continue;
    got["any_of"].if_array()->push_back(Json::object({{"group", ""},
                                                      {"name", in.string_at({"node"})},
                                                      {"path", in.string_at({"path"})},
                                                      {"resource", "nodes"},
                                                      {"resource_request", true},
                                                      {"subresource", subresource},
                                                      {"verb", access.verb},
                                                      {"version", "v1"}}));
  }
  return support::compare(*row.find("want"), got);
}

/// An error of a step; nullopt: the call succeeds.
std::optional<Error> error_in(const Json& step, std::string_view member) {
  const Json* found = step.find(member);
  if (found == nullptr) return std::nullopt;
  return Error{ErrorCode::kInternalError, std::string(found->string_at({})), {}};
}

/// A node that starts the same container again and again.
struct Pulls {
  ImagePulls pulls;
  ImageWanted wanted;
  std::set<std::string, std::less<>> present;
  Instant now{};
  Json events = Json::array();

  /// The message of the last event, except that of a pull: it ends with the time it took, which no row has.
  std::string keep(ImageAnswer answer, ImageAnswer& last) {
    std::string message;
    for (const ImageNews& each : answer.news) {
      constexpr std::string_view kPulled = "Successfully pulled image";
      const std::string_view shown = each.message.starts_with(kPulled) ? kPulled : std::string_view(each.message);
      events.if_array()->emplace_back(fmt::format(
          "{} {} {}", each.weight == PodNotice::Weight::kWarning ? "Warning" : "Normal", each.reason, shown));
      message = shown == kPulled ? std::string() : std::string(shown);
    }
    last = std::move(answer);
    return message;
  }

  Json run(const Json& step) {
    now += api::parse_duration(step.string_at({"wait_before"})).value();
    events = Json::array();
    ImageAnswer answer;
    std::string message;
    if (auto known = pulls.begin(wanted, now)) {
      message = keep(*std::move(known), answer);
    } else {
      const auto failure = error_in(step, "inspect_error");
      const bool has = present.contains(parse_image_name(wanted.image)->to_pull);
      const Result<std::string> status =
          failure ? Result<std::string>(*failure) : Result<std::string>(std::string(has ? "sha256:there" : ""));
      message = keep(pulls.on_status(wanted, status, now), answer);
    }
    Json made = Json::object({{"pulled", false}});
    if (std::holds_alternative<ImageToPull>(answer.what)) {
      made["pulled"] = true;
      const auto failure = error_in(step, "pull_error");
      if (!failure) present.insert(std::get<ImageToPull>(answer.what).name);
      message = keep(pulls.on_pulled(wanted,
                                     failure ? Result<PulledImage>(*failure)
                                             : Result<PulledImage>(PulledImage{.ref = "sha256:new", .size_bytes = 1}),
                                     now),
                     answer);
    }
    if (const auto* refusal = std::get_if<ImageRefusal>(&answer.what)) {
      made["reason"] = refusal->reason;
      message = refusal->message;
    }
    made["message"] = message;
    made["events"] = std::move(events);
    return made;
  }
};

Json runtime_error(const Json& in) {
  ImagePulls pulls;
  const auto answer =
      pulls.on_pulled({"u", std::string(in.string_at({"image"})), {}}, *error_in(in, "error"), Instant{});
  const auto& refusal = std::get<ImageRefusal>(answer.what);
  return Json::object({{"message", refusal.message}, {"reason", refusal.reason}});
}

std::optional<Mismatch> image_pull_reason(const Json& row) {
  const Json& in = *row.find("in");
  const std::string_view op = row.string_at({"op"});
  Json want = *row.find("want");
  if (op == "runtime_error") {
    Json got = runtime_error(in);
    // Rows give an object as reason where any reason is right.
    if (want.find("reason")->is_object()) got["reason"] = Json::object();
    return support::compare(want, got);
  }
  if (op == "default_tag") {
    const auto name = parse_image_name(in.string_at({"image"}));
    const Json got = name ? Json::object({{"image", name->to_pull}})
                          : Json::object({{"image", ""},
                                          {"error", fmt::format("couldn't parse image name \"{}\": {}",
                                                                in.string_at({"image"}), name.error().message)}});
    return support::compare(want, got);
  }
  Pulls node;
  node.wanted = {"u1", std::string(in.string_at({"image"})), std::string(in.string_at({"policy"}))};
  for (const Json& each : *in.find("present")->if_array()) node.present.emplace(each.string_at({}));
  Json got = Json::object({{"steps", Json::array()}});
  for (const Json& step : *in.find("steps")->if_array()) got["steps"].if_array()->push_back(node.run(step));
  return support::compare(want, got);
}

const bool kKubeletAuthz = support::add_vector_check("kubelet-surface/kubelet_authz", kubelet_authz);
const bool kImagePullReason = support::add_vector_check("kubelet-surface/image_pull_reason", image_pull_reason);

}  // namespace
}  // namespace spillway::agent
