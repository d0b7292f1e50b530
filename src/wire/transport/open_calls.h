// The calls that a transport has open for its receivers, and the delivery of events to them: always posted, none after
// a receiver has dropped the call. Thread: loop; post_frame() and post_last() any.
#pragma once

#include "client/engine.h"
#include "runtime/loop.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::wire {

class OpenCalls : public std::enable_shared_from_this<OpenCalls> {
 public:
  using Receiver = client::Transport::Receiver;

  /// A call or watch whose receiver still expects events.
  struct Entry {
    Receiver* receiver = nullptr;  // loop; null once the receiver has dropped the call
    client::CallId id = 0;
    std::uint64_t work = 0;  // the transport's number for it
    std::atomic<std::size_t> queued_bytes = 0;
  };

  using EntryPtr = std::shared_ptr<Entry>;

  /// `loop` must outlive this object.
  explicit OpenCalls(runtime::Loop& loop) : loop_(loop) {}

  EntryPtr add(Receiver& receiver, client::CallId id);
  /// Null if the call is not open (any more).
  EntryPtr remove(Receiver& receiver, client::CallId id);
  std::vector<EntryPtr> remove_all(Receiver& receiver);
  std::vector<EntryPtr> remove_all();

  /// `event`: the parsed frame, if there is one, which must not be changed any more; `frame` may be null then.
  /// `delivered`, if given, is called on the loop when the frame has left the queue, delivered or dropped. `bytes`: the
  /// size for which it counts; 0: the size of the frame.
  void post_frame(const EntryPtr& entry, std::shared_ptr<const std::string> frame,
                  std::move_only_function<void()> delivered = {}, api::WatchDocumentPtr event = {},
                  std::size_t bytes = 0);
  /// The last event of the entry, which is then closed.
  void post_last(const EntryPtr& entry, client::ApiEvent event);

 private:
  runtime::Loop& loop_;
  std::map<std::pair<Receiver*, client::CallId>, EntryPtr> open_;
};

}  // namespace spillway::wire
