#include "apiserver/write/update_turns.h"

#include "apiserver/write/object_write.h"

#include <utility>

namespace spillway::apiserver {

bool UpdateTurns::enter(const std::string& store_key, WritePtr update) {
  const auto [queue, first] = updates_.try_emplace(store_key);
  queue->second.push_back(std::move(update));
  return first;
}

void UpdateTurns::release(const std::string& store_key) {
  const auto queue = updates_.find(store_key);
  queue->second.pop_front();
  pass_turn(queue);
}

void UpdateTurns::begin_renewal(const std::string& store_key) {
  updates_.try_emplace(store_key);
}

void UpdateTurns::end_renewal(const std::string& store_key) {
  pass_turn(updates_.find(store_key));
}

void UpdateTurns::pass_turn(Queues::iterator queue) {
  if (queue->second.empty()) {
    updates_.erase(queue);
  } else {
    next_.push_back(queue->second.front());
  }
}

void UpdateTurns::begin_next() {
  if (beginning_) return;
  beginning_ = true;
  while (!next_.empty()) {
    const WritePtr next = std::move(next_.front());
    next_.pop_front();
    next->advance();
  }
  beginning_ = false;
}

}  // namespace spillway::apiserver
