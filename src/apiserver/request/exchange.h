// One request until its answer: its target, its user, the form of its answer, and the sink. Answers exactly once;
// afterwards, or once the client is gone, every further call only reports the answer to the observer.
// Thread: loop. Source: spec "API server contract", 4.4, 4.5, 16.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/paced_sink.h"
#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/request/answer_observer.h"
#include "apiserver/request/negotiation.h"
#include "apiserver/request/read_request.h"
#include "apiserver/request/request_options.h"
#include "apiserver/request/request_steps.h"
#include "apiserver/request/route.h"
#include "base/time.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// The flow that a request belongs to, as its answer names it.
struct FlowMark {
  std::string schema_uid;
  std::string level_uid;
};

class Exchange {
 public:
  /// Called once, when the answer is complete or the client is gone; with the HTTP code, 0 if none was sent.
  using Finished = std::function<void(Exchange&, int code)>;

  /// `read`: the parsed form of this request; not null.
  Exchange(std::uint64_t id, api::Request request, std::shared_ptr<const api::UserInfo> user,
           std::shared_ptr<const ReadRequest> read, std::shared_ptr<api::ResponseSink> sink, std::string audit_id,
           Finished finished);

  std::uint64_t id() const { return id_; }

  const api::Request& request() const { return request_; }

  const api::UserInfo& user() const { return *user_; }

  const std::shared_ptr<const api::UserInfo>& shared_user() const { return user_; }

  /// The parsed request; after reroute() the one it was rerouted to.
  const ReadRequest& read() const { return rerouted_ ? *rerouted_ : *read_; }

  /// Replaces the parsed request by `read`: the same request, parsed with another table of resources.
  void reroute(std::shared_ptr<const ReadRequest> read) { rerouted_ = std::move(read); }

  /// The parsed body; empty where it was not parsed, or no longer matches the request.
  const ReadBody& read_ahead() const { return body_replaced_ || rerouted_ ? kUnread : read_->body; }

  /// Replaces the body by the document that webhooks have changed, as JSON.
  void replace_body(const api::Json& document);

  const std::string& audit_id() const { return audit_id_; }

  bool finished() const { return sink_ == nullptr; }

  /// Adds the observer of the answer. At most one.
  void observe(std::unique_ptr<AnswerObserver> observer) { observer_ = std::move(observer); }

  /// Null: no observer, or the observer has been released.
  AnswerObserver* observer() const { return observer_.get(); }

  /// The name writes are recorded under when no fieldManager is given: the user agent up to its first '/'.
  std::string user_agent_name() const;

  /// The name that a write with these options is recorded under.
  std::string manager(const WriteOptions& options) const {
    return options.field_manager.empty() ? user_agent_name() : options.field_manager;
  }

  // The target as it was parsed.
  const api::Target& target;
  const RequestAttributes& asked;
  // Filled in as the request is carried out.
  Route route;  // made from `asked`
  AnswerForm form;
  std::vector<std::string> warnings;
  Instant started{};
  std::optional<Instant> dispatched;     // time of the dispatch
  std::shared_ptr<const FlowMark> flow;  // null: unknown
  std::size_t effort = 0;                // cost so far, in bytes as slices count them (slice_queue.h)
  RequestSteps steps;                    // steps in which the request waits for others
  std::function<void()> release_seats;   // called when the answer streams or another program works; may be empty

  void answer(int code, std::string body, std::string_view content_type, api::HeaderList headers = {});
  /// In the encoding of `form`, where the document's kind has one. JSON ends with a newline and is indented when the
  /// request wants `pretty`, or does not mention it and the client is curl, Wget or a browser.
  void answer(int code, const api::Json& document, api::HeaderList headers = {});
  /// `bytes`: encoded as `form` says, JSON without a newline. `document`: the same content, or null.
  void answer_object(int code, std::string bytes, api::DocumentPtr document = nullptr);
  void fail(const api::Status& status);

  /// Marks the request as waiting for another program. `drop` is called if the client goes away before.
  void wait_for_others(std::function<void()> drop);

  bool waits_for_others() const { return waits_for_others_; }

  /// Begins a streaming answer. `drop` is called if the client goes away before end().
  void open_stream(std::string_view content_type, std::function<void()> drop, int code = 200,
                   api::HeaderList headers = {});
  /// False: the receiver is full or gone; call end().
  [[nodiscard]] bool write(std::shared_ptr<const std::string> chunk);

  /// Bytes of the stream that wait for the client; 0 once it is gone.
  std::size_t waiting_bytes() const { return sink_ == nullptr ? 0 : api::waiting_bytes(*sink_); }

  /// True if the answer may be sent as open_pieces(), write() for each piece, and end().
  bool takes_pieces() const;

  /// The length that an answer must exceed before it may be sent in pieces.
  std::size_t whole_bytes_min() const;

  /// Begins an answer in the encoding of `form` whose body follows in pieces: a JSON body ends with a newline. `drop`
  /// is called if end() is never reached: the client disconnects, or the answer is cut.
  void open_pieces(std::function<void()> drop);

  bool in_pieces() const { return in_pieces_; }

  /// Calls `act` once when no more than `bytes` of the stream wait for the client; never once it is gone.
  void when_below(std::size_t bytes, std::function<void()> act);
  /// Aborts an answer in pieces, or a stream, so that its client notices that it is incomplete.
  void cut();

  /// Writes one event of a watch; `event` is the document of `line`, or null.
  [[nodiscard]] bool write_event(const std::shared_ptr<const std::string>& line, const api::WatchDocumentPtr& event);
  void end();

  /// The client has disconnected.
  void abandon();
  /// Hands the sink on, and the observer with it, for an answer that another object writes; the exchange counts as
  /// finished.
  std::shared_ptr<api::ResponseSink> release();

 private:
  bool is_pretty() const;
  api::HeaderList standard_headers(std::string_view content_type) const;
  /// The standard headers and `headers`, whose Cache-Control replaces ours.
  api::HeaderList with_standard_headers(std::string_view content_type, api::HeaderList headers) const;

  static const ReadBody kUnread;

  /// True once an answer was given or the client has disconnected.
  bool is_complete() const { return sink_ == nullptr && observer_ == nullptr; }

  void answer_with(int code, std::string body, std::string_view content_type, api::HeaderList headers,
                   const api::Json* document);
  void end_observation();
  /// `composed`: see AnswerObserver.
  void send(api::Response response, const api::Json* document, bool composed);
  void finish(int code);

  std::uint64_t id_;
  api::Request request_;
  std::shared_ptr<const api::UserInfo> user_;
  std::shared_ptr<const ReadRequest> read_;
  std::shared_ptr<const ReadRequest> rerouted_;  // null: the request was not rerouted
  std::shared_ptr<api::ResponseSink> sink_;
  std::string audit_id_;
  Finished finished_;
  std::function<void()> drop_;
  std::unique_ptr<AnswerObserver> observer_;
  bool streaming_ = false;
  int stream_code_ = 200;
  bool in_pieces_ = false;
  bool body_replaced_ = false;
  bool waits_for_others_ = false;
};

using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace spillway::apiserver
