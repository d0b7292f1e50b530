#include "wire/transport/crossing_transport.h"

#include <map>
#include <string>
#include <utility>
#include <variant>

namespace spillway::wire {

/// The end of the crossing on the other loop: one receiver of the inner transport for each receiver of the engine's
/// side. Thread: the other loop.
class CrossingTransport::FarSide {
 public:
  using Key = const Transport::Receiver*;  // the engine's, as a name: it belongs to another thread

  FarSide(std::unique_ptr<client::Transport> inner, std::shared_ptr<OpenCalls> calls)
      : inner_(std::move(inner)), calls_(std::move(calls)) {}

  ~FarSide() {
    for (auto& [key, far] : receivers_) inner_->disconnect(far);
  }

  FarSide(const FarSide&) = delete;
  FarSide& operator=(const FarSide&) = delete;

  /// `entry`: takes the events; null for a command without any.
  void execute(client::ApiCommand command, Key key, OpenCalls::EntryPtr entry) {
    FarReceiver& far = receivers_.try_emplace(key, *this).first->second;
    if (entry) {
      far.open.insert_or_assign(entry->id, std::move(entry));
    } else {
      far.open.erase(std::get<client::CloseWatch>(command).id);
    }
    inner_->execute(std::move(command), far);
  }

  void disconnect(Key key) {
    const auto found = receivers_.find(key);
    if (found == receivers_.end()) return;
    inner_->disconnect(found->second);
    receivers_.erase(found);
  }

 private:
  struct FarReceiver final : Transport::Receiver {
    explicit FarReceiver(FarSide& owner) : side(owner) {}

    void on_api_event(client::ApiEvent event) override { side.deliver(*this, std::move(event)); }

    FarSide& side;
    std::map<client::CallId, OpenCalls::EntryPtr> open;
  };

  void deliver(FarReceiver& far, client::ApiEvent event) {
    const client::CallId id = std::visit([](const auto& each) { return each.id; }, event);
    const auto found = far.open.find(id);
    if (found == far.open.end()) return;
    if (auto* frame = std::get_if<client::WatchFrame>(&event)) return pass_frame(far, found->second, std::move(*frame));
    const OpenCalls::EntryPtr entry = std::move(found->second);
    far.open.erase(found);
    calls_->post_last(entry, std::move(event));
  }

  void pass_frame(FarReceiver& far, OpenCalls::EntryPtr entry, client::WatchFrame frame) {
    const std::size_t bytes = frame.document ? frame.document->size() : 1;
    if (entry->queued_bytes + bytes > kWatchBytesMax) {
      far.open.erase(entry->id);
      inner_->execute(client::CloseWatch{entry->id}, far);
      return calls_->post_last(entry, client::WatchEnded{entry->id, make_error(ErrorCode::kServiceUnavailable,
                                                                               "the watch was not read in time")});
    }
    api::WatchDocumentPtr own;
    if (frame.event) own = std::make_shared<const api::WatchDocument>(frame.event->type, frame.event->object);
    calls_->post_frame(entry, std::move(frame.document), {}, std::move(own), bytes);
  }

  std::unique_ptr<client::Transport> inner_;
  std::shared_ptr<OpenCalls> calls_;
  std::map<Key, FarReceiver> receivers_;
};

CrossingTransport::CrossingTransport(runtime::Loop& own, runtime::Loop& other, std::unique_ptr<client::Transport> inner)
    : other_(other),
      calls_(std::make_shared<OpenCalls>(own)),
      far_(std::make_shared<FarSide>(std::move(inner), calls_)) {}

CrossingTransport::~CrossingTransport() {
  calls_->remove_all();
  other_.post([far = std::move(far_)]() mutable { far.reset(); });
}

void CrossingTransport::execute(client::ApiCommand command, Receiver& receiver) {
  OpenCalls::EntryPtr entry;
  if (const auto* close = std::get_if<client::CloseWatch>(&command)) {
    if (!calls_->remove(receiver, close->id)) return;
  } else {
    const client::CallId id = std::visit([](const auto& each) { return each.id; }, command);
    entry = calls_->add(receiver, id);
  }
  other_.post([far = far_.get(), key = &receiver, entry = std::move(entry), command = std::move(command)]() mutable {
    far->execute(std::move(command), key, std::move(entry));
  });
}

void CrossingTransport::disconnect(Receiver& receiver) {
  calls_->remove_all(receiver);
  other_.post([far = far_.get(), key = &receiver] { far->disconnect(key); });
}

}  // namespace spillway::wire
