#include "apiserver/read/origin.h"

#include "apiserver/read/watch_cache.h"

#include <memory>
#include <optional>
#include <utility>

namespace spillway::apiserver {

void Origin::barrier(store::Completion<store::Revision> done) {
  store_.barrier([this, done = std::move(done)](Result<store::Revision> reached) mutable {
    if (!reached || is_followed_) return done(std::move(reached));
    done(make_error(ErrorCode::kServiceUnavailable, "the objects of the store are being loaded"));
  });
}

void Origin::on_changes(const std::vector<store::Change>& changes) {
  cache_.on_changes(*this, changes);
}

void Origin::on_reached(store::Revision revision) {
  cache_.on_reached(*this, revision);
}

void Origin::on_watch_end(const Error& error) {
  is_followed_ = false;
  cache_.on_watch_end(*this, error);
}

void barrier_of_each(const std::vector<Origin*>& origins, std::move_only_function<void(Outcome)> done) {
  struct Wait {
    std::size_t open = 0;
    Outcome outcome;
    std::move_only_function<void(Outcome)> done;
  };

  if (origins.empty()) return done({});
  const auto wait = std::make_shared<Wait>(Wait{origins.size(), {}, std::move(done)});
  for (Origin* origin : origins) {
    origin->barrier([wait](const Result<store::Revision>& reached) {
      if (!reached && wait->outcome) wait->outcome = reached.error();
      if (--wait->open == 0) wait->done(std::move(wait->outcome));
    });
  }
}

}  // namespace spillway::apiserver
