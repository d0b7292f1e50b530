#include "wire/transport/https_transport.h"

#include "api/json/json.h"
#include "api/text/duration.h"
#include "client/api_client.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::wire {

namespace {

constexpr std::size_t kFrameBytesMax = std::size_t{16} * 1024 * 1024;
constexpr std::size_t kErrorBytesMax = std::size_t{1024} * 1024;
/// Above the first a watch is not read on, below the second it is again.
constexpr std::size_t kQueuedBytesHigh = std::size_t{8} * 1024 * 1024;
constexpr std::size_t kQueuedBytesLow = std::size_t{2} * 1024 * 1024;

/// A heartbeat that has had no answer for so long is given up by its engine, as a kubelet gives up a renewal of its
/// lease: the connection is not used for the next one.
constexpr Duration kHeartbeatMax = seconds(10);

/// The time that the caller gives the server, if the request has one.
Duration time_for(const api::Request& request, Duration at_most) {
  const auto target = api::parse_target(request.target);
  if (!target) return at_most;
  const std::string* text = target->find("timeout");
  if (text == nullptr) return at_most;
  const auto asked = api::parse_duration(*text);
  return asked && *asked > Duration::zero() ? std::min(*asked, at_most) : at_most;
}

}  // namespace

// Listeners run on the transport's thread.

class HttpsTransport::CallListener final : public HttpClient::Listener {
 public:
  CallListener(std::shared_ptr<OpenCalls> calls, OpenCalls::EntryPtr entry, std::shared_ptr<DecodingWish> decoding)
      : calls_(std::move(calls)), entry_(std::move(entry)), decoding_(std::move(decoding)) {}

  void on_head(const api::Response& head) override { response_ = head; }

  void on_data(std::string data) override { response_.body += data; }

  void on_done(std::optional<Error> error) override {
    Result<api::Response> outcome = error ? Result<api::Response>(*std::move(error)) : decoding_->decode(response_);
    calls_->post_last(entry_, client::CallDone{entry_->id, std::move(outcome)});
  }

 private:
  std::shared_ptr<OpenCalls> calls_;
  OpenCalls::EntryPtr entry_;
  std::shared_ptr<DecodingWish> decoding_;
  api::Response response_;
};

class HttpsTransport::WatchListener final : public HttpClient::Listener {
 public:
  WatchListener(std::shared_ptr<OpenCalls> calls, OpenCalls::EntryPtr entry, std::shared_ptr<DecodingWish> decoding,
                std::shared_ptr<runtime::Loop> io, std::weak_ptr<HttpClient> client)
      : calls_(std::move(calls)),
        entry_(std::move(entry)),
        decoding_(std::move(decoding)),
        io_(std::move(io)),
        client_(std::move(client)) {}

  void on_head(const api::Response& head) override {
    head_ = head;
    decoder_.set_type(head.header("content-type"));
  }

  void on_data(std::string data) override {
    if (broken_) return;
    if (!accepted()) {
      head_.body.append(data, 0, kErrorBytesMax - std::min(kErrorBytesMax, head_.body.size()));
      return;
    }
    auto frames = decoder_.push(data);
    if (!frames) return break_off(frames.error());
    for (WatchDecoder::Frame& frame : *frames) post(std::move(frame));
    if (entry_->queued_bytes > kQueuedBytesHigh) pause();
  }

  void on_done(std::optional<Error> error) override {
    if (broken_) return;
    if (!accepted() && head_.status != 0) {
      const Result<api::Response> refusal = decoding_->decode(std::move(head_));
      error = refusal ? client::error_of_answer(refusal->status, refusal->body) : refusal.error();
    } else if (!error) {
      auto rest = decoder_.finish();
      if (rest) {
        for (WatchDecoder::Frame& frame : *rest) post(std::move(frame));
      } else {
        error = rest.error();
      }
    }
    calls_->post_last(entry_, client::WatchEnded{entry_->id, std::move(error)});
  }

 private:
  bool accepted() const { return head_.status >= 200 && head_.status < 300; }

  void post(WatchDecoder::Frame frame) {
    auto delivered = [entry = entry_, paused = paused_, io = io_, client = client_] {
      if (entry->queued_bytes > kQueuedBytesLow || !paused->exchange(false)) return;
      io->post([entry, client] {
        if (const auto alive = client.lock()) alive->resume(entry->work);
      });
    };
    calls_->post_frame(entry_, std::move(frame.text), std::move(delivered), std::move(frame.event), frame.bytes);
  }

  /// Either the loop sees the mark and resumes later, or this thread sees that it has caught up meanwhile.
  void pause() {
    paused_->store(true);
    if (entry_->queued_bytes <= kQueuedBytesLow && paused_->exchange(false)) return;
    if (const auto client = client_.lock()) client->pause(entry_->work);
  }

  void break_off(Error error) {
    broken_ = true;
    if (decoder_.is_protobuf()) decoding_->give_up();
    calls_->post_last(entry_, client::WatchEnded{entry_->id, std::move(error)});
    io_->post([work = entry_->work, client = client_] {
      if (const auto alive = client.lock()) alive->cancel(work);
    });
  }

  std::shared_ptr<OpenCalls> calls_;
  OpenCalls::EntryPtr entry_;
  std::shared_ptr<DecodingWish> decoding_;
  std::shared_ptr<runtime::Loop> io_;
  std::weak_ptr<HttpClient> client_;
  api::Response head_{.status = 0, .headers = {}, .body = {}, .document = {}};  // the body: of a refusal
  WatchDecoder decoder_{kFrameBytesMax};
  bool broken_ = false;
  std::shared_ptr<std::atomic<bool>> paused_ = std::make_shared<std::atomic<bool>>(false);
};

HttpsTransport::HttpsTransport(runtime::Loop& loop, Options options)
    : answer_max_(options.answer_max),
      decoding_(std::make_shared<DecodingWish>(options.protobuf)),
      calls_(std::make_shared<OpenCalls>(loop)),
      io_("spillway-https"),
      client_(std::make_shared<HttpClient>(io_.loop(), std::move(options.endpoint), options.limits)) {}

HttpsTransport::~HttpsTransport() {
  calls_->remove_all();
  io_.stop();
}

void HttpsTransport::use_certificate(std::shared_ptr<const TlsContext> tls) {
  io_.loop().post([client = client_, tls = std::move(tls)]() mutable { client->use_certificate(std::move(tls)); });
}

void HttpsTransport::execute(client::ApiCommand command, Receiver& receiver) {
  if (auto* call = std::get_if<client::SendCall>(&command)) {
    const OpenCalls::EntryPtr entry = calls_->add(receiver, call->id);
    entry->work = ++last_work_;
    api::Request& request = call->request;
    if (request.body.empty() && request.document) request.body = api::to_text(*request.document);
    start(entry, std::move(request), HttpClient::Kind::kCall, std::make_shared<CallListener>(calls_, entry, decoding_));
  } else if (auto* watch = std::get_if<client::OpenWatch>(&command)) {
    const OpenCalls::EntryPtr entry = calls_->add(receiver, watch->id);
    entry->work = ++last_work_;
    start(entry, std::move(watch->request), HttpClient::Kind::kStream,
          std::make_shared<WatchListener>(calls_, entry, decoding_, io_.share(), client_));
  } else {
    cancel(calls_->remove(receiver, std::get<client::CloseWatch>(command).id));
  }
}

void HttpsTransport::disconnect(Receiver& receiver) {
  for (const OpenCalls::EntryPtr& entry : calls_->remove_all(receiver)) cancel(entry);
}

void HttpsTransport::start(const OpenCalls::EntryPtr& entry, api::Request request, HttpClient::Kind kind,
                           std::shared_ptr<HttpClient::Listener> listener) {
  decoding_->apply(request);
  // For a watch, "timeout" is the length of the watch itself.
  const bool heartbeat = lane_of(kind, request.method, request.target) == Lane::kHeartbeats;
  const Duration longest = heartbeat ? std::min(answer_max_, kHeartbeatMax) : answer_max_;
  const Duration at_most = kind == HttpClient::Kind::kCall ? time_for(request, longest) : answer_max_;
  io_.loop().post([client = client_.get(), work = entry->work, request = std::move(request), kind, at_most,
                   listener = std::move(listener)]() mutable {
    client->start(work, std::move(request), kind, at_most, std::move(listener));
  });
}

void HttpsTransport::cancel(const OpenCalls::EntryPtr& entry) {
  if (!entry) return;
  io_.loop().post([client = client_.get(), work = entry->work] { client->cancel(work); });
}

}  // namespace spillway::wire
