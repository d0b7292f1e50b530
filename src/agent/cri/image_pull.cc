#include "agent/cri/image_pull.h"

#include "agent/cri/image_name.h"
#include "api/text/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr auto kNormal = PodNotice::Weight::kNormal;
constexpr auto kWarning = PodNotice::Weight::kWarning;
constexpr std::string_view kUnavailable = "RegistryUnavailable";
constexpr std::string_view kUnsigned = "SignatureValidationFailed";

bool is_forgotten(Instant at, Instant now) {
  return now - at > 2 * kImageBackOffMax;
}

ImageAnswer refuse(std::string reason, std::string message, PodNotice::Weight weight, std::string event) {
  return {.what = ImageRefusal{std::move(reason), message}, .news = {{weight, std::move(event), message}}};
}

ImageRefusal refusal_of(const std::string& image, const std::string& problem) {
  const auto rest = [&](std::string_view prefix) { return problem.substr(prefix.size()); };
  if (problem.starts_with(kUnavailable))
    return {std::string(kUnavailable),
            fmt::format("image pull failed for {} because the registry is unavailable{}", image, rest(kUnavailable))};
  if (problem.starts_with(kUnsigned))
    return {std::string(kUnsigned),
            fmt::format("image pull failed for {} because the signature validation failed{}", image, rest(kUnsigned))};
  return {"ErrImagePull", problem};
}

}  // namespace

std::string pull_policy_of(std::string_view image, std::string_view policy) {
  if (!policy.empty()) return std::string(policy);
  const std::string_view last = image.substr(image.rfind('/') + 1);
  const bool latest = !last.contains('@') && (!last.contains(':') || last.ends_with(":latest"));
  return latest ? "Always" : "IfNotPresent";
}

std::string ImagePulls::key_of(const ImageWanted& wanted) {
  return fmt::format("{}_{}", wanted.pod_uid, wanted.image);
}

std::optional<ImageAnswer> ImagePulls::begin(const ImageWanted& wanted, Instant now) {
  const auto name = parse_image_name(wanted.image);
  if (!name)
    return refuse("InvalidImageName",
                  fmt::format("Failed to apply default image tag \"{}\": couldn't parse image name \"{}\": {}",
                              wanted.image, wanted.image, name.error().message),
                  kWarning, "InspectFailed");
  if (wanted.policy == "Always") return pull_or_wait(wanted, now);
  return std::nullopt;
}

ImageAnswer ImagePulls::on_status(const ImageWanted& wanted, const Result<std::string>& present, Instant now) {
  if (!present)
    return refuse("ImageInspectError", fmt::format("Failed to inspect image \"\": {}", present.error().message),
                  kWarning, "InspectFailed");
  if (!present->empty())
    return {
        .what = ImagePresent{*present},
        .news = {{kNormal, "Pulled", fmt::format("Container image \"{}\" already present on machine", wanted.image)}}};
  if (wanted.policy == "Never")
    return refuse("ErrImageNeverPull",
                  fmt::format("Container image \"{}\" is not present with pull policy of Never", wanted.image),
                  kWarning, "ErrImageNeverPull");
  return pull_or_wait(wanted, now);
}

ImageAnswer ImagePulls::pull_or_wait(const ImageWanted& wanted, Instant now) {
  std::erase_if(failures_, [now](const auto& entry) { return is_forgotten(entry.second.at, now); });
  const auto failed = failures_.find(key_of(wanted));
  if (failed != failures_.end()) {
    Failure& failure = failed->second;
    if (now - failure.at < failure.back_off.wait()) {
      std::string message = fmt::format("Back-off pulling image \"{}\"", wanted.image);
      ImageNews news{kNormal, "BackOff", message};
      if (!failure.what.empty()) message += ": " + failure.what;
      return {.what = ImageRefusal{"ImagePullBackOff", std::move(message)}, .news = {std::move(news)}};
    }
    failure.what.clear();
  }
  return {.what = ImageToPull{parse_image_name(wanted.image)->to_pull},
          .news = {{kNormal, "Pulling", fmt::format("Pulling image \"{}\"", wanted.image)}}};
}

ImageAnswer ImagePulls::on_pulled(const ImageWanted& wanted, const Result<PulledImage>& pulled, Instant now) {
  if (pulled)
    return {.what = ImagePresent{pulled->ref},
            .news = {{kNormal, "Pulled",
                      fmt::format("Successfully pulled image \"{}\" in {} ({} including waiting). Image size: {} "
                                  "bytes.",
                                  wanted.image, api::format_duration(pulled->took),
                                  api::format_duration(pulled->took_with_waiting), pulled->size_bytes)}}};
  const std::string& problem = pulled.error().message;
  ImageRefusal refusal = refusal_of(wanted.image, problem);
  const auto [entry, first] = failures_.try_emplace(key_of(wanted));
  Failure& failure = entry->second;
  const bool anew = first || is_forgotten(failure.at, now);
  if (anew) failure.back_off.reset();
  failure.back_off.next();
  failure.at = now;
  failure.what = fmt::format("{}: {}", refusal.reason, refusal.message);
  return {.what = std::move(refusal),
          .news = {{kWarning, "Failed", fmt::format("Failed to pull image \"{}\": {}", wanted.image, problem)}}};
}

}  // namespace spillway::agent
