#include "sim/hollow/hollow_control.h"

#include "api/codec/codec.h"
#include "api/object/node.h"

#include <algorithm>
#include <utility>

namespace spillway::sim {
namespace {

constexpr int kDeleteRetries = 5;
constexpr std::size_t kDeletesAtOnce = 32;

std::string path_of_node(const std::string& node) {
  return client::object_path("v1", "nodes", {}, node);
}

}  // namespace

HollowControl::HollowControl(Rng rng, OnNode on_node)
    : client_("spillway-hollow", rng, {.in_flight_max = kDeletesAtOnce, .retries_max = kDeleteRetries}),
      on_node_(std::move(on_node)) {}

void HollowControl::start(Now now) {
  client_.start(now);
  client_.at(now.mono + kReadEvery, [this](Now later) { read(later); });
}

void HollowControl::read(Now now) {
  client_.at(now.mono + kReadEvery, [this](Now later) { read(later); });
  auto next = observed_.upper_bound(last_read_);
  for (std::size_t i = 0; i < std::min(kReadsAtOnce, observed_.size()); ++i) {
    if (next == observed_.end()) next = observed_.begin();
    last_read_ = *next++;
    client_.get(path_of_node(last_read_),
                [this, node = last_read_](const Result<api::Json>& answer, Now) { on_read(node, answer); });
  }
}

void HollowControl::on_read(const std::string& node, const Result<api::Json>& answer) {
  if (!observed_.contains(node)) return;
  if (!answer && answer.error().code != ErrorCode::kNotFound) return;  // the next reading may succeed
  if (!answer) return on_node_(node, {});
  if (const auto read = api::decode<api::Node>(*answer)) on_node_(node, read->metadata.annotations);
}

void HollowControl::remove(const std::vector<std::string>& nodes, std::function<void(const Deleted&)> done) {
  if (nodes.empty()) return done(deleted_);
  deleting_ = nodes.size();
  on_all_deleted_ = std::move(done);
  for (const std::string& node : nodes)
    client_.remove(path_of_node(node), {}, [this](const Result<api::Json>& answer, Now) { on_deleted(answer); });
}

void HollowControl::on_deleted(const Result<api::Json>& answer) {
  if (answer || answer.error().code == ErrorCode::kNotFound) {
    ++deleted_.nodes;
  } else {
    ++deleted_.failed;
    if (!deleted_.first_error) deleted_.first_error = answer.error();
  }
  if (--deleting_ == 0) on_all_deleted_(deleted_);
}

}  // namespace spillway::sim
