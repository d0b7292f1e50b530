// Objects as items of lists in protobuf, kept for some seconds: both passes of a list, and lists of other clients
// meanwhile, encode a revision of an object once. An item is the object alone; which objects a list
// holds is decided for each list.
// Thread: loop. Bounds: kBytesMax, kAge. Once there is no room new items are not kept, so that a list longer than that
// finds its first items again.
#pragma once

#include "apiserver/read/stored_object.h"
#include "apiserver/resource/timer_queue.h"
#include "base/time.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

namespace spillway::apiserver {

class EncodedItems {
 public:
  /// A list of 5,000 nodes of 8 kB takes 30 MiB in protobuf.
  static constexpr std::size_t kBytesMax = std::size_t{32} << 20U;
  /// Time from encoding to release: clients that lose their server list again within seconds of each other.
  static constexpr Duration kAge = seconds(5);

  /// `now`: where the instant of the present event is kept.
  EncodedItems(TimerQueue& timers, const Now& now) : timers_(timers), now_(now) {}

  /// Keeps the item of an object that has none (StoredObject::protobuf_item), if there is room.
  void keep(const ObjectPtr& object, store::Value item) {
    if (object->protobuf_item || bytes_ + item->size() > kBytesMax) return;
    bytes_ += item->size();
    kept_.push_back({object, item->size(), now_.mono});
    object->protobuf_item = std::move(item);
    arm();
  }

  std::size_t size() const { return kept_.size(); }

  std::size_t bytes() const { return bytes_; }

 private:
  struct Kept {
    std::weak_ptr<const StoredObject> object;
    std::size_t bytes = 0;
    Instant since;
  };

  void arm() {
    if (kept_.empty() || std::exchange(armed_, true)) return;
    timers_.at(kept_.front().since + kAge, [this] { release(); });
  }

  void release() {
    armed_ = false;
    while (!kept_.empty() && kept_.front().since + kAge <= now_.mono) {
      if (const ObjectPtr object = kept_.front().object.lock()) object->protobuf_item = nullptr;
      bytes_ -= kept_.front().bytes;
      kept_.pop_front();
    }
    if (kept_.empty()) kept_ = {};
    arm();
  }

  TimerQueue& timers_;
  const Now& now_;
  std::deque<Kept> kept_;  // oldest first
  std::size_t bytes_ = 0;
  bool armed_ = false;
};

}  // namespace spillway::apiserver
