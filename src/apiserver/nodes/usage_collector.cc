#include "apiserver/nodes/usage_collector.h"

#include "api/text/time_text.h"
#include "apiserver/nodes/node_address.h"
#include "base/alive.h"

#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kSummary = "/stats/summary?only_cpu_and_memory=true";

std::optional<std::uint64_t> number_at(const Json& document, std::initializer_list<std::string_view> path) {
  const Json* found = document.at(path);
  return found == nullptr ? std::nullopt : found->if_uint64();
}

std::optional<Usage> usage_of(const Json& stats) {
  const auto cores = number_at(stats, {"cpu", "usageNanoCores"});
  const auto bytes = number_at(stats, {"memory", "workingSetBytes"});
  const auto time = api::parse_time(stats.string_at({"memory", "time"}));
  if (!cores || !bytes || !time) return std::nullopt;
  return Usage{*time, *cores, *bytes};
}

const Json::Array& list_at(const Json& document, std::string_view member) {
  static const Json::Array none;
  const Json* found = document.find(member);
  const Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? none : *list;
}

}  // namespace

NodeUsage parse_summary_usage(const Json& summary) {
  NodeUsage out;
  if (const Json* node = summary.find("node")) out.node = usage_of(*node);
  for (const Json& pod : list_at(summary, "pods")) {
    std::vector<ContainerUsage> containers;
    bool whole = true;
    for (const Json& container : list_at(pod, "containers")) {
      const std::optional<Usage> usage = usage_of(container);
      whole = whole && usage.has_value();
      if (usage) containers.push_back({std::string(container.string_at({"name"})), *usage});
    }
    if (whole && !containers.empty()) out.pods.emplace(pod.string_at({"podRef", "uid"}), std::move(containers));
  }
  return out;
}

/// Takes an agent's answer, in one piece or as a stream.
class UsageCollector::AnswerSink final : public api::ResponseSink {
 public:
  AnswerSink(UsageCollector& owner, std::string node, Instant asked)
      : owner_(owner), alive_(owner.alive_.ref()), node_(std::move(node)), asked_(asked) {}

  ~AnswerSink() override { done(std::nullopt); }

  AnswerSink(const AnswerSink&) = delete;
  AnswerSink& operator=(const AnswerSink&) = delete;

  void on_response(api::Response response) override { done(std::move(response)); }

  void on_stream(api::Response head) override { streamed_ = std::move(head); }

  bool write(std::shared_ptr<const std::string> chunk) override {
    if (streamed_.body.size() + chunk->size() > kAnswerBytesMax) return false;
    streamed_.body += *chunk;
    return true;
  }

  void on_end() override { done(std::move(streamed_)); }

 private:
  void done(const std::optional<api::Response>& answer) {
    if (std::exchange(done_, true) || alive_.expired()) return;
    owner_.on_answer(node_, asked_, answer);
  }

  UsageCollector& owner_;
  Alive::Ref alive_;
  std::string node_;
  Instant asked_;
  api::Response streamed_;
  bool done_ = false;
};

bool UsageCollector::is_fresh(const std::string& node) const {
  const auto sample = samples_.find(node);
  return sample != samples_.end() && core_.now.mono < sample->second.asked + kFreshFor;
}

const NodeUsage* UsageCollector::find(const std::string& node) const {
  const auto sample = samples_.find(node);
  if (sample == samples_.end()) return nullptr;
  const std::optional<NodeUsage>& usage = sample->second.usage;
  return usage && core_.now.mono < sample->second.asked + kFreshFor + kPatience ? &*usage : nullptr;
}

void UsageCollector::collect(const std::set<std::string>& nodes, std::function<void()> ready) {
  const ResourceCache& known = core_.cache.of(core_.registry.get("nodes"));
  std::erase_if(samples_, [&](const auto& entry) { return !known.find(entry.first); });
  const auto gathering = std::make_shared<Gathering>();
  gathering->ready = std::move(ready);
  gathering->missing = 1;  // counts this call itself, so that `ready` is not called too early
  for (const std::string& node : nodes) {
    if (is_fresh(node)) continue;
    ++gathering->missing;
    auto& waiting = wanted_[node];
    if (waiting.empty()) queue_.push_back(node);
    waiting.push_back(gathering);
  }
  ask_next();
  if (--gathering->missing == 0) return finish(*gathering);
  gathering->timer = core_.timers.at(core_.now.mono + kPatience, [gathering] {
    gathering->timer.reset();
    if (gathering->ready) std::exchange(gathering->ready, {})();
  });
}

void UsageCollector::ask_next() {
  while (asked_ < kAskedMax && !queue_.empty()) {
    const std::string node = std::move(queue_.front());
    queue_.pop_front();
    ++asked_;
    ask(node);
  }
}

/// The answer may arrive before this function returns.
void UsageCollector::ask(const std::string& node) {
  const Instant asked = core_.now.mono;
  const auto sink = std::make_shared<AnswerSink>(*this, node, asked);
  const ObjectPtr object = core_.cache.of(core_.registry.get("nodes")).find(node);
  const auto address = object ? node_address(object->document())
                              : api::StatusResult<NodeAddress>(api::not_found_status({"", "nodes"}, node));
  if (gateway_ == nullptr || !address) return;  // the sink reports its end in its destructor
  gateway_->open(node, address->host, address->port, {.method = api::Method::kGet, .target = std::string(kSummary)},
                 sink);
}

void UsageCollector::on_answer(const std::string& node, Instant asked, const std::optional<api::Response>& answer) {
  --asked_;
  Sample sample{asked, std::nullopt};
  if (answer && answer->ok()) {
    if (const Result<Json> summary = api::parse_json(answer->body)) sample.usage = parse_summary_usage(*summary);
  }
  samples_.insert_or_assign(node, std::move(sample));
  auto waiting = wanted_.extract(node);
  if (!waiting.empty()) {
    for (const auto& gathering : waiting.mapped()) {
      if (--gathering->missing == 0) finish(*gathering);
    }
  }
  if (!queue_.empty()) {  // not from here: an immediate answer would nest one level per node
    core_.timers.at(core_.now.mono, [this] { ask_next(); });
  }
}

void UsageCollector::finish(Gathering& gathering) {
  if (gathering.timer) core_.timers.cancel(*gathering.timer);
  gathering.timer.reset();
  if (gathering.ready) std::exchange(gathering.ready, {})();
}

}  // namespace spillway::apiserver
