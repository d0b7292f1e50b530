#include "wire/in_process_transport.h"

#include "client/api_client.h"
#include "wire/frame_splitter.h"

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::wire {

/// A call or a watch that the receiver still wants to hear of.
struct InProcessTransport::Open {
  client::Transport::Receiver* receiver = nullptr;  // null once the receiver has dropped it
  client::CallId id = 0;
  RequestHandler::Ticket ticket = 0;
  bool answered = false;  // the server is through with it; the last event may still be on its way
  std::size_t queued_bytes = 0;
};

/// What is open, by receiver and id.
class InProcessTransport::Desk : public std::enable_shared_from_this<Desk> {
 public:
  using Key = std::pair<Receiver*, client::CallId>;

  explicit Desk(runtime::Loop& loop) : loop_(loop) {}

  std::shared_ptr<Open> add(Receiver& receiver, client::CallId id) {
    auto entry = std::make_shared<Open>();
    entry->receiver = &receiver;
    entry->id = id;
    open_[Key(&receiver, id)] = entry;
    return entry;
  }

  std::shared_ptr<Open> remove(Receiver& receiver, client::CallId id) {
    const auto it = open_.find(Key(&receiver, id));
    if (it == open_.end()) return nullptr;
    std::shared_ptr<Open> entry = std::move(it->second);
    open_.erase(it);
    entry->receiver = nullptr;
    return entry;
  }

  std::vector<std::shared_ptr<Open>> remove_all(Receiver& receiver) {
    std::vector<std::shared_ptr<Open>> removed;
    for (auto it = open_.lower_bound(Key(&receiver, 0)); it != open_.end() && it->first.first == &receiver;) {
      it->second->receiver = nullptr;
      removed.push_back(std::move(it->second));
      it = open_.erase(it);
    }
    return removed;
  }

  std::vector<std::shared_ptr<Open>> remove_all() {
    std::vector<std::shared_ptr<Open>> removed;
    for (auto& [key, entry] : open_) {
      entry->receiver = nullptr;
      removed.push_back(std::move(entry));
    }
    open_.clear();
    return removed;
  }

  void post_frame(const std::shared_ptr<Open>& entry, FrameSplitter::Frame frame) {
    entry->queued_bytes += frame->size();
    loop_.post([entry, frame = std::move(frame)]() mutable {
      entry->queued_bytes -= frame->size();
      if (entry->receiver == nullptr) return;
      entry->receiver->on_api_event(client::WatchFrame{entry->id, std::move(frame)});
    });
  }

  void post_last(const std::shared_ptr<Open>& entry, client::ApiEvent event) {
    entry->answered = true;
    loop_.post([desk = weak_from_this(), entry, event = std::move(event)]() mutable {
      Receiver* receiver = entry->receiver;
      if (receiver == nullptr) return;
      if (const auto alive = desk.lock()) alive->remove(*receiver, entry->id);
      receiver->on_api_event(std::move(event));
    });
  }

 private:
  runtime::Loop& loop_;
  std::map<Key, std::shared_ptr<Open>> open_;
};

/// Collects the answer to a call; one that streams is collected until it ends.
class InProcessTransport::CallSink final : public api::ResponseSink {
 public:
  CallSink(std::weak_ptr<Desk> desk, std::shared_ptr<Open> open) : desk_(std::move(desk)), open_(std::move(open)) {}

  ~CallSink() override {
    finish(make_error(ErrorCode::kServiceUnavailable, "the API server dropped the request without an answer"));
  }

  CallSink(const CallSink&) = delete;
  CallSink& operator=(const CallSink&) = delete;

  void on_response(api::Response response) override { finish(std::move(response)); }

  void on_stream(api::Response head) override { streamed_ = std::move(head); }

  bool write(std::shared_ptr<const std::string> chunk) override {
    if (open_->receiver == nullptr || streamed_.body.size() + chunk->size() > kWatchBytesMax) return false;
    streamed_.body += *chunk;
    return true;
  }

  void on_end() override { finish(std::move(streamed_)); }

 private:
  void finish(Result<api::Response> response) {
    if (open_->answered) return;
    open_->answered = true;
    if (const auto desk = desk_.lock()) desk->post_last(open_, client::CallDone{open_->id, std::move(response)});
  }

  std::weak_ptr<Desk> desk_;
  std::shared_ptr<Open> open_;
  api::Response streamed_;
};

class InProcessTransport::WatchSink final : public api::ResponseSink {
 public:
  WatchSink(std::weak_ptr<Desk> desk, std::shared_ptr<Open> open) : desk_(std::move(desk)), open_(std::move(open)) {}

  ~WatchSink() override {
    finish(make_error(ErrorCode::kServiceUnavailable, "the API server dropped the watch without an answer"));
  }

  WatchSink(const WatchSink&) = delete;
  WatchSink& operator=(const WatchSink&) = delete;

  void on_response(api::Response response) override {
    if (!response.ok()) return finish(client::error_of_answer(response.status, response.body));
    if (write(std::make_shared<const std::string>(std::move(response.body)))) on_end();
  }

  void on_stream(api::Response head) override {
    if (!head.ok()) finish(client::error_of_answer(head.status, head.body));
  }

  bool write(std::shared_ptr<const std::string> chunk) override {
    const auto desk = desk_.lock();
    if (!desk || open_->receiver == nullptr || open_->answered) return false;
    if (open_->queued_bytes + chunk->size() > kWatchBytesMax) return false;
    auto frames = splitter_.push(chunk);
    if (!frames) {
      finish(frames.error());
      return false;
    }
    for (FrameSplitter::Frame& frame : *frames) desk->post_frame(open_, std::move(frame));
    return true;
  }

  void on_end() override {
    const auto desk = desk_.lock();
    FrameSplitter::Frame rest = splitter_.finish();
    if (desk && rest && !open_->answered) desk->post_frame(open_, std::move(rest));
    finish(std::nullopt);
  }

 private:
  void finish(std::optional<Error> error) {
    if (open_->answered) return;
    open_->answered = true;
    if (const auto desk = desk_.lock()) desk->post_last(open_, client::WatchEnded{open_->id, std::move(error)});
  }

  std::weak_ptr<Desk> desk_;
  std::shared_ptr<Open> open_;
  FrameSplitter splitter_{kWatchBytesMax};
};

InProcessTransport::InProcessTransport(runtime::Loop& loop, RequestHandler& server, api::UserInfo user)
    : server_(server), user_(std::move(user)), desk_(std::make_shared<Desk>(loop)) {}

InProcessTransport::~InProcessTransport() {
  for (const std::shared_ptr<Open>& open : desk_->remove_all()) abandon(open);
}

void InProcessTransport::execute(client::ApiCommand command, Receiver& receiver) {
  if (auto* call = std::get_if<client::SendCall>(&command)) {
    const std::shared_ptr<Open> entry = desk_->add(receiver, call->id);
    auto sink = std::make_shared<CallSink>(desk_, entry);
    entry->ticket = server_.on_request(std::move(call->request), user_, std::move(sink));
  } else if (auto* watch = std::get_if<client::OpenWatch>(&command)) {
    const std::shared_ptr<Open> entry = desk_->add(receiver, watch->id);
    auto sink = std::make_shared<WatchSink>(desk_, entry);
    entry->ticket = server_.on_request(std::move(watch->request), user_, std::move(sink));
  } else {
    abandon(desk_->remove(receiver, std::get<client::CloseWatch>(command).id));
  }
}

void InProcessTransport::disconnect(Receiver& receiver) {
  for (const std::shared_ptr<Open>& open : desk_->remove_all(receiver)) abandon(open);
}

void InProcessTransport::abandon(const std::shared_ptr<Open>& open) {
  if (!open || open->answered) return;
  open->answered = true;
  server_.on_abandoned(open->ticket);
}

}  // namespace spillway::wire
