#include "host/containers/image_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace spillway::host {
namespace {

using api::Json;

constexpr std::size_t kNamedInLog = 20;
constexpr int kFailuresToReport = 2;  // the first failure is usual: the size of the file system is not known yet

std::vector<std::string> names_of(const Json& image) {
  std::vector<std::string> names;
  for (const std::string_view member : {"repo_tags", "repo_digests"}) {
    const Json* found = image.find(member);
    const Json::Array* list = found == nullptr ? nullptr : found->if_array();
    if (list == nullptr) continue;
    for (const Json& each : *list) names.emplace_back(each.string_at({}));
  }
  return names;
}

/// True for names like "registry.k8s.io/pause:3.9", whatever the registry.
bool is_called_pause(const std::string& name) {
  const std::string path = name.substr(0, name.find_first_of("@"));
  const std::string last = path.substr(path.rfind('/') + 1);
  return last.substr(0, last.find(':')) == "pause";
}

/// Parses a verbose Status in the forms of containerd and CRI-O.
std::string sandbox_image_in(const Json& status) {
  const Result<Json> config = api::parse_json(status.string_at({"info", "config"}));
  return config ? std::string(config->string_at({"sandboxImage"})) : std::string();
}

}  // namespace

struct ImageCollector::Pass {
  Kind kind = Kind::kDetect;
  std::optional<agent::ImageGcPass> removals;
  Seen seen;
  std::int64_t removed = 0;
};

ImageCollector::ImageCollector(runtime::Loop& loop, Ports ports, telemetry::Log log, agent::ImageGcPolicy policy)
    : loop_(loop), ports_(std::move(ports)), log_(std::move(log)), policy_(policy), images_(policy, loop.now().mono) {}

void ImageCollector::start() {
  begin(Kind::kDetect);
  run_later();
}

void ImageCollector::run_later() {
  loop_.at(loop_.now().mono + kInterval, alive_.guard([this] {
    const bool disabled = policy_.high_threshold_percent == 100 && policy_.max_age == Duration{};
    begin(disabled ? Kind::kDetect : Kind::kPeriodic);
    run_later();
  }));
}

void ImageCollector::reclaim(std::function<void(Reclaimed)> done) {
  waiting_.push_back(std::move(done));
  begin(Kind::kReclaim);
}

void ImageCollector::call(std::string_view method, Json request, RuntimeCalls::Answer answer) {
  ports_.calls.call(
      method, std::move(request), kRuntimeCallMax,
      alive_.guard([answer = std::move(answer)](Result<Json> result) mutable { answer(std::move(result)); }));
}

/// A pass that is requested during another one is dropped; a reclaim follows it.
void ImageCollector::begin(Kind kind) {
  if (pass_) return;
  pass_ = std::make_shared<Pass>();
  pass_->kind = kind;
  ask_sandbox_image();
}

void ImageCollector::ask_sandbox_image() {
  if (sandbox_image_) return ask_images();
  call("Status", Json::object({{"verbose", true}}), [this](Result<Json> status) {
    if (!status) return end(status.error());
    sandbox_image_ = sandbox_image_in(*status);
    ask_images();
  });
}

void ImageCollector::ask_images() {
  call("ListImages", Json::object(), [this](Result<Json> images) {
    if (!images) return end(images.error());
    ask_containers(*std::move(images));
  });
}

/// Lists all containers, of every owner.
void ImageCollector::ask_containers(Json images) {
  call("ListContainers", Json::object(), [this, images = std::move(images)](Result<Json> containers) {
    if (!containers) return end(containers.error());
    on_seen(seen_in(images, *containers));
  });
}

ImageCollector::Seen ImageCollector::seen_in(const Json& images, const Json& containers) const {
  std::set<std::string, std::less<>> used;  // ids and names
  for (const Json& each : list_in(containers, "containers")) {
    for (const std::string_view name : {each.string_at({"image_ref"}), each.string_at({"image", "image"})})
      if (!name.empty()) used.emplace(name);
  }
  Seen seen;
  for (const Json& each : list_in(images, "images")) {
    ListedImage image{.id = std::string(each.string_at({"id"})), .names = names_of(each)};
    const bool runs = used.contains(image.id) ||
                      std::ranges::any_of(image.names, [&](const auto& name) { return used.contains(name); });
    const Json* pinned = each.find("pinned");
    const bool of_sandboxes =
        sandbox_image_ && !sandbox_image_->empty()
            ? image.id == *sandbox_image_ || std::ranges::find(image.names, *sandbox_image_) != image.names.end()
            : std::ranges::any_of(image.names, is_called_pause);
    seen.images.push_back({.id = image.id,
                           .size_bytes = number_in(each, {"size"}),
                           .pinned = of_sandboxes || (pinned != nullptr && pinned->if_bool().value_or(false)),
                           .in_use = runs || ports_.is_wanted(image)});
    seen.listed.push_back(std::move(image));
  }
  return seen;
}

void ImageCollector::on_seen(Seen seen) {
  const Instant now = loop_.now().mono;
  images_.detect(seen.images, now);
  if (pass_->kind == Kind::kDetect) return end({});
  pass_->removals.emplace(pass_->kind == Kind::kReclaim ? images_.remove_unused(seen.images, now)
                                                        : images_.collect(ports_.file_system(), seen.images, now));
  pass_->seen = std::move(seen);
  std::vector<std::string> plan = pass_->removals->plan();
  if (!plan.empty()) {
    const std::size_t all = plan.size();
    plan.resize(std::min(all, kNamedInLog));
    log_.info("images are removed", {{"why", pass_->kind == Kind::kReclaim ? "the node reclaims" : "thresholds"},
                                     {"images", static_cast<std::uint64_t>(all)},
                                     {"first", fmt::format("{}", fmt::join(plan, " "))}});
  }
  remove_next();
}

void ImageCollector::remove_next() {
  for (;;) {
    const std::string id = pass_->removals->next();
    if (id.empty()) return end(pass_->removals->result().error);
    const auto image = std::ranges::find(pass_->seen.listed, id, &ListedImage::id);
    if (image == pass_->seen.listed.end() || !ports_.is_wanted(*image)) return remove(id);
    pass_->removals->on_removed(make_error(ErrorCode::kConflict, "a container is being started from image {}", id));
  }
}

void ImageCollector::remove(const std::string& id) {
  call("RemoveImage", Json::object({{"image", Json::object({{"image", id}})}}), [this](Result<Json> removed) {
    // A runtime that does not answer is not called for every image, with a deadline each.
    if (!removed && removed.error().code == ErrorCode::kTimeout) return end(removed.error());
    if (removed) ++pass_->removed;
    pass_->removals->on_removed(removed ? Outcome()
                                        : Outcome(Error{removed.error().code, rpc_text(removed.error()), {}}));
    remove_next();
  });
}

void ImageCollector::end(std::optional<Error> error) {
  const auto pass = std::exchange(pass_, nullptr);
  if (pass->removals) {
    for (const agent::GcEvent& each : pass->removals->result().events) ports_.record_event(each);
  }
  const std::int64_t bytes = pass->removals ? pass->removals->result().freed_bytes : 0;
  if (pass->removed > 0) log_.info("images were removed", {{"images", pass->removed}, {"bytes", bytes}});
  if (pass->kind == Kind::kReclaim) {
    for (const auto& done : std::exchange(waiting_, {}))
      done({.images = pass->removed, .bytes = bytes, .problem = error ? error->text() : std::string()});
  } else if (pass->kind == Kind::kPeriodic) {
    report(error);
  }
  if (!waiting_.empty()) begin(Kind::kReclaim);
}

void ImageCollector::report(const std::optional<Error>& error) {
  failures_ = error ? failures_ + 1 : 0;
  if (!error) return;
  log_.warning("images could not be collected", {{"error", error->text()}});
  if (failures_ >= kFailuresToReport) ports_.record_event({"ImageGCFailed", error->text()});
}

}  // namespace spillway::host
