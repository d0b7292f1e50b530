#include "wire/transport/in_process_transport.h"

#include "client/api_client.h"
#include "wire/transport/frame_splitter.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::wire {

/// The end of an answer, which is reported once; a sink that is destroyed without one ends with an error.
class InProcessTransport::Sink : public api::ResponseSink {
 public:
  Sink(const InProcessTransport& transport, OpenCalls::EntryPtr entry)
      : calls_(transport.calls_), unanswered_(transport.unanswered_), entry_(std::move(entry)) {}

  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

 protected:
  const OpenCalls::Entry& entry() const { return *entry_; }

  bool finished() const { return finished_; }

  void finish(client::ApiEvent event) {
    if (std::exchange(finished_, true)) return;
    if (const auto unanswered = unanswered_.lock()) unanswered->erase(entry_.get());
    if (const auto calls = calls_.lock()) calls->post_last(entry_, std::move(event));
  }

  /// `event`: the document of the only frame, or null.
  void post_frames(std::vector<FrameSplitter::Frame> frames, const api::WatchDocumentPtr& event = nullptr) {
    const auto calls = calls_.lock();
    for (FrameSplitter::Frame& frame : frames) {
      if (calls) calls->post_frame(entry_, std::move(frame), {}, event);
    }
  }

 private:
  std::weak_ptr<OpenCalls> calls_;
  std::weak_ptr<std::set<OpenCalls::Entry*>> unanswered_;
  OpenCalls::EntryPtr entry_;
  bool finished_ = false;
};

/// Collects the answer to a call; one that streams is collected until it ends.
class InProcessTransport::CallSink final : public Sink {
 public:
  using Sink::Sink;

  ~CallSink() override {
    done(make_error(ErrorCode::kServiceUnavailable, "the API server dropped the request without an answer"));
  }

  void on_response(api::Response response) override { done(std::move(response)); }

  void on_stream(api::Response head) override { streamed_ = std::move(head); }

  bool write(std::shared_ptr<const std::string> chunk) override {
    if (finished() || entry().receiver == nullptr) return false;
    if (streamed_.body.size() + chunk->size() > kWatchBytesMax) return false;
    streamed_.body += *chunk;
    return true;
  }

  void on_end() override { done(std::move(streamed_)); }

 private:
  void done(Result<api::Response> response) { finish(client::CallDone{entry().id, std::move(response)}); }

  api::Response streamed_;
};

class InProcessTransport::WatchSink final : public Sink {
 public:
  using Sink::Sink;

  ~WatchSink() override {
    done(make_error(ErrorCode::kServiceUnavailable, "the API server dropped the watch without an answer"));
  }

  void on_response(api::Response response) override {
    if (!response.ok()) return done(client::error_of_answer(response.status, response.body));
    if (write(std::make_shared<const std::string>(std::move(response.body)))) on_end();
  }

  void on_stream(api::Response head) override {
    if (!head.ok()) done(client::error_of_answer(head.status, head.body));
  }

  bool write(std::shared_ptr<const std::string> chunk) override { return write_event(std::move(chunk), nullptr); }

  bool write_event(std::shared_ptr<const std::string> line, api::WatchDocumentPtr event) override {
    if (finished() || entry().receiver == nullptr) return false;
    if (entry().queued_bytes + line->size() > kWatchBytesMax) return false;
    auto frames = splitter_.push(line);
    if (!frames) {
      done(frames.error());
      return false;
    }
    if (frames->size() != 1) event = nullptr;
    post_frames(*std::move(frames), event);
    return true;
  }

  void on_end() override {
    FrameSplitter::Frame rest = splitter_.finish();
    if (rest && !finished()) post_frames({std::move(rest)});
    done(std::nullopt);
  }

 private:
  void done(std::optional<Error> error) { finish(client::WatchEnded{entry().id, std::move(error)}); }

  FrameSplitter splitter_{kWatchBytesMax};
};

InProcessTransport::InProcessTransport(runtime::Loop& loop, RequestHandler& server, api::UserInfo user)
    : server_(server),
      user_(std::make_shared<const api::UserInfo>(std::move(user))),
      calls_(std::make_shared<OpenCalls>(loop)),
      unanswered_(std::make_shared<std::set<OpenCalls::Entry*>>()) {}

InProcessTransport::~InProcessTransport() {
  for (const OpenCalls::EntryPtr& entry : calls_->remove_all()) abandon(entry);
}

void InProcessTransport::execute(client::ApiCommand command, Receiver& receiver) {
  if (auto* call = std::get_if<client::SendCall>(&command)) {
    const OpenCalls::EntryPtr entry = calls_->add(receiver, call->id);
    ask(entry, std::move(call->request), std::make_shared<CallSink>(*this, entry));
  } else if (auto* watch = std::get_if<client::OpenWatch>(&command)) {
    const OpenCalls::EntryPtr entry = calls_->add(receiver, watch->id);
    ask(entry, std::move(watch->request), std::make_shared<WatchSink>(*this, entry));
  } else {
    abandon(calls_->remove(receiver, std::get<client::CloseWatch>(command).id));
  }
}

void InProcessTransport::disconnect(Receiver& receiver) {
  for (const OpenCalls::EntryPtr& entry : calls_->remove_all(receiver)) abandon(entry);
}

void InProcessTransport::ask(const OpenCalls::EntryPtr& entry, api::Request request, std::shared_ptr<Sink> sink) {
  unanswered_->insert(entry.get());
  entry->work = server_.on_request({std::move(request), user_}, std::move(sink));
}

void InProcessTransport::abandon(const OpenCalls::EntryPtr& entry) {
  if (entry && unanswered_->erase(entry.get()) == 1) server_.on_abandoned(entry->work);
}

}  // namespace spillway::wire
