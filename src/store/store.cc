#include "store/store.h"

#include <algorithm>
#include <utility>

namespace spillway::store {

/// A store whose changes are as many as its revisions.
void Store::oldest_within(Revision head, std::uint64_t changes_max, Completion<Revision> done) {
  const std::uint64_t oldest = head.number() > changes_max ? head.number() - changes_max : 0;
  done(std::max(compacted(), Revision(oldest)));
}

/// A store without other writers has delivered everything before it answers.
void Store::barrier(Completion<Revision> done) {
  Range nothing;
  nothing.limit = 1;
  range(std::move(nothing), [done = std::move(done)](Result<RangeResult> result) mutable {
    if (!result) return done(std::move(result.error()));
    done(result->revision);
  });
}

std::optional<Error> refuse_write(const Write& write, const StoreLimits& limits) {
  if (write.key.empty()) return make_error(ErrorCode::kBadRequest, "a write needs a key");
  if (write.key.size() > limits.key_bytes_max) {
    return make_error(ErrorCode::kRequestEntityTooLarge, "key of {} bytes; the limit is {}", write.key.size(),
                      limits.key_bytes_max);
  }
  if (write.value && write.value->size() > limits.value_bytes_max) {
    return make_error(ErrorCode::kRequestEntityTooLarge, "{}: object of {} bytes; the store's limit is {}", write.key,
                      write.value->size(), limits.value_bytes_max);
  }
  return std::nullopt;
}

}  // namespace spillway::store
