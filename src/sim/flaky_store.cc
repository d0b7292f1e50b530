#include "sim/flaky_store.h"

#include <algorithm>
#include <utility>

namespace spillway::sim {

void FlakyStore::write(store::Write write, store::Completion<store::WriteResult> done) {
  if (faults_.refused_ppm > 0 && rng_.chance_ppm(faults_.refused_ppm)) {
    const ErrorCode code = rng_.below(2) == 0 ? ErrorCode::kServiceUnavailable : ErrorCode::kTooManyRequests;
    time_.after(Duration::zero(), [code, done = std::move(done)]() mutable {
      done(make_error(code, "not stored: the simulated disk does not take it"));
    });
    return;
  }
  // Completions keep the order of the writes: a late one delays the later ones.
  Instant due = time_.now().mono;
  if (faults_.late_ppm > 0 && rng_.chance_ppm(faults_.late_ppm)) {
    due += Duration(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(faults_.late_max.count()) + 1)));
  }
  last_due_ = std::max(last_due_, due);
  if (last_due_ <= time_.now().mono) return inner_.write(std::move(write), std::move(done));
  inner_.write(
      std::move(write), [this, due = last_due_, done = std::move(done)](Result<store::WriteResult> result) mutable {
        time_.at(due, [done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
      });
}

}  // namespace spillway::sim
