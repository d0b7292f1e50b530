#include "wire/transport/extender_caller.h"

#include <optional>
#include <utility>

namespace spillway::wire {

/// The HTTP clients and their open calls. Thread: io; results are posted to the owner's loop.
class ExtenderCaller::Room final : public std::enable_shared_from_this<Room> {
 public:
  Room(runtime::Loop& owner, runtime::Loop& io, std::weak_ptr<Waiting> waiting, std::vector<HttpEndpoint> extenders,
       std::size_t answer_bytes_max)
      : owner_(owner), io_(io), waiting_(std::move(waiting)) {
    const HttpClient::Limits limits{.connections_max = 16,
                                    .waiting_max = 256,
                                    .body_bytes_max = answer_bytes_max,
                                    .connect_max = seconds(10),
                                    .idle_max = seconds(30)};
    for (HttpEndpoint& extender : extenders) {
      clients_.push_back(std::make_unique<HttpClient>(io_, std::move(extender), limits));
    }
  }

  void start(std::uint64_t id, Question question) {
    auto ear = std::make_shared<ExtenderEar>(*this, id, std::move(question));
    ears_.emplace(id, ear);
    ear->start();
  }

  /// Ends everything.
  void close() {
    ears_.clear();
    clients_.clear();
  }

 private:
  /// Receives the events of one exchange.
  struct ExtenderEar final : HttpClient::Listener, std::enable_shared_from_this<ExtenderEar> {
    ExtenderEar(Room& owner, std::uint64_t call_id, Question asked)
        : room(owner), id(call_id), question(std::move(asked)) {}

    void start() {
      api::Request request{
          .method = api::Method::kPost,
          .target = "/" + question.verb,
          .headers = {{"accept", "application/json"}, {"content-type", "application/json"}, {"user-agent", "spillway"}},
          .body = question.body,
          .document = nullptr};
      room.clients_[question.extender]->start(id, std::move(request), HttpClient::Kind::kCall, question.timeout,
                                              shared_from_this());
    }

    void on_head(const api::Response& head) override {
      answer.status = head.status;
      head_seen = true;
    }

    void on_data(std::string data) override { answer.body += data; }  // the HTTP client limits the size

    void on_done(std::optional<Error> error) override { room.on_done(*this, std::move(error)); }

    Room& room;
    std::uint64_t id;
    Question question;
    api::Response answer{.status = 0, .headers = {}, .body = {}, .document = nullptr};
    bool head_seen = false;
    bool repeated = false;
  };

  void on_done(ExtenderEar& ear, std::optional<Error> error) {
    const bool in_time = error && error->code != ErrorCode::kTimeout;
    const bool again = in_time && !ear.head_seen && ear.question.repeatable && !std::exchange(ear.repeated, true);
    if (again) {
      io_.post([weak = weak_from_this(), id = ear.id] {
        const auto alive = weak.lock();
        if (alive && alive->ears_.contains(id)) alive->ears_.at(id)->start();
      });
      return;
    }
    Result<api::Response> result = std::move(ear.answer);
    if (error) result = *std::move(error);
    const std::uint64_t id = ear.id;
    ears_.erase(id);
    owner_.post([weak = waiting_, id, result = std::move(result)]() mutable {
      const auto waiting = weak.lock();
      if (waiting == nullptr) return;
      auto found = waiting->calls.extract(id);
      if (!found.empty()) found.mapped()(std::move(result));
    });
  }

  runtime::Loop& owner_;
  runtime::Loop& io_;
  std::weak_ptr<Waiting> waiting_;
  std::vector<std::unique_ptr<HttpClient>> clients_;
  std::map<std::uint64_t, std::shared_ptr<ExtenderEar>> ears_;
};

ExtenderCaller::ExtenderCaller(runtime::Loop& loop, std::vector<HttpEndpoint> extenders, std::size_t answer_bytes_max)
    : loop_(loop),
      io_("spillway-extend"),
      room_(std::make_shared<Room>(loop_, io_.loop(), waiting_, std::move(extenders), answer_bytes_max)) {}

ExtenderCaller::~ExtenderCaller() {
  io_.stop();
  room_->close();
}

void ExtenderCaller::call(Question question, Done done) {
  const std::uint64_t id = ++last_id_;
  waiting_->calls.emplace(id, std::move(done));
  io_.loop().post(
      [room = room_, id, question = std::move(question)]() mutable { room->start(id, std::move(question)); });
}

}  // namespace spillway::wire
