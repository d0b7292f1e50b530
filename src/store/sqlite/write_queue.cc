#include "store/sqlite/write_queue.h"

#include <utility>

namespace spillway::store::sqlite {
namespace {

std::size_t bytes_of(const Request& request) {
  const auto* write = std::get_if<WriteRequest>(&request);
  if (write == nullptr) return 0;
  return write->write.key.size() + (write->write.value ? write->write.value->size() : 0);
}

}  // namespace

std::optional<Error> WriteQueue::refusal(std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (stopping_) return make_error(ErrorCode::kServiceUnavailable, "the store is stopping");
  const bool fits =
      requests_.size() < options_.limits.pending_operations_max && bytes_ + bytes <= options_.limits.pending_bytes_max;
  if (fits) return std::nullopt;
  return make_error(ErrorCode::kTooManyRequests, "the store is busy: {} writes are waiting", requests_.size());
}

void WriteQueue::push(Request request) {
  {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes_of(request);
    requests_.push_back(std::move(request));
  }
  wake_.notify_one();
}

void WriteQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
}

std::optional<std::vector<Request>> WriteQueue::take(std::optional<Duration> patience) {
  std::unique_lock lock(mutex_);
  const auto something = [this] { return stopping_ || !requests_.empty(); };
  if (!patience) {
    wake_.wait(lock, something);
  } else if (*patience > Duration::zero()) {
    wake_.wait_for(lock, *patience, something);
  }
  if (requests_.empty() && stopping_) return std::nullopt;
  std::vector<Request> group;
  std::size_t group_bytes = 0;
  const auto group_bytes_max = static_cast<std::size_t>(options_.group_bytes_max.count());
  while (!requests_.empty() && group.size() < options_.group_writes_max && group_bytes < group_bytes_max) {
    group_bytes += bytes_of(requests_.front());
    group.push_back(std::move(requests_.front()));
    requests_.pop_front();
  }
  bytes_ -= group_bytes;
  return group;
}

}  // namespace spillway::store::sqlite
