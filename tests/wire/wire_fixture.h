// Common parts of the tests of wire/: a loop on a thread, a scripted handler, and a blocking client that can misbehave.
// No test waits longer than kPatience; none sleeps.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "base/unique_fd.h"
#include "runtime/loop_thread.h"
#include "support/patience.h"
#include "wire/http/http_parser.h"
#include "wire/net/byte_stream.h"
#include "wire/net/socket.h"
#include "wire/server/http_exchange.h"
#include "wire/server/http_server.h"
#include "wire/tls/tls.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::wire {

using support::kPatienceMs;

/// Runs functions on a loop of its own and waits for them.
class LoopRoom {
 public:
  runtime::Loop& loop() { return thread_.loop(); }

  template <typename Act>
  auto run(Act act) -> decltype(act()) {
    auto task = std::make_shared<std::packaged_task<decltype(act())()>>(std::move(act));
    auto done = task->get_future();
    thread_.loop().post([task] { (*task)(); });
    return done.get();
  }

 private:
  runtime::LoopThread thread_{"test-loop"};
};

/// A value that arrives from another thread.
template <typename T>
class Mailbox {
 public:
  void put(T value) { promise_.set_value(std::move(value)); }

  T take() {
    auto future = promise_.get_future();
    if (future.wait_for(std::chrono::milliseconds(kPatienceMs)) != std::future_status::ready) {
      ADD_FAILURE() << "nothing arrived";
      return T{};
    }
    return future.get();
  }

 private:
  std::promise<T> promise_;
};

/// Answers by path. Everything happens on the loop.
class ScriptedHandler final : public RequestHandler {
 public:
  struct Seen {
    api::Request request;
    api::UserInfo user;
    std::shared_ptr<api::ResponseSink> sink;
  };

  using Script = std::function<void(Seen& seen)>;

  void on(const std::string& path, Script script) { scripts_[path] = std::move(script); }

  Ticket on_request(Incoming incoming, std::shared_ptr<api::ResponseSink> sink) override {
    const Ticket ticket = ++last_ticket_;
    Seen seen{std::move(incoming.request), *incoming.user, std::move(sink)};
    targets.push_back(seen.request.target);
    const auto script = scripts_.find(seen.request.target.substr(0, seen.request.target.find('?')));
    if (script != scripts_.end()) {
      script->second(seen);
    } else {
      api::Response response;
      response.headers = {{"Content-Type", "text/plain"}};
      response.body = std::string(api::to_string(seen.request.method)) + " " + seen.request.target + " " +
                      seen.request.body + " by " + seen.user.name;
      seen.sink->on_response(std::move(response));
    }
    return ticket;
  }

  void on_abandoned(Ticket ticket) override {
    abandoned.push_back(ticket);
    if (when_abandoned) when_abandoned();
  }

  std::vector<std::string> targets;
  std::vector<Ticket> abandoned;
  std::function<void()> when_abandoned;

 private:
  std::map<std::string, Script> scripts_;
  Ticket last_ticket_ = 0;
};

/// Raises the times of a server that the test has not set itself: a busy machine may hold a test up for longer than a
/// server waits for a client.
inline HttpServer::Options with_patience(HttpServer::Options options) {
  const HttpLimits usual{};
  for (Duration HttpLimits::* limit :
       {&HttpLimits::handshake_max, &HttpLimits::header_max, &HttpLimits::body_max, &HttpLimits::unproven_idle_max,
        &HttpLimits::idle_max, &HttpLimits::stalled_max, &HttpLimits::stalled_pressed_max}) {
    if (options.limits.*limit == usual.*limit) options.limits.*limit = support::kPatience;
  }
  return options;
}

/// A port of this machine that is taken, so that no other program gets it, and on which connections are refused.
class ClosedPort {
 public:
  ClosedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    number_ = ntohs(address.sin_port);
  }

  std::uint16_t number() const { return number_; }

 private:
  UniqueFd socket_;
  std::uint16_t number_ = 0;
};

/// A server on a loop of its own.
class ServerRoom {
 public:
  template <typename Act>
  auto run(Act act) {
    return loops.run(std::move(act));
  }

  explicit ServerRoom(HttpServer::Options options = {}) {
    run([&] {
      server = std::make_unique<HttpServer>(loops.loop(), handler, with_patience(std::move(options)));
      const Outcome started = server->start();
      EXPECT_TRUE(started) << started.error().text();
      port = server->port();
    });
  }

  ~ServerRoom() {
    run([&] { server.reset(); });
  }

  ServerRoom(const ServerRoom&) = delete;
  ServerRoom& operator=(const ServerRoom&) = delete;

  LoopRoom loops;
  ScriptedHandler handler;
  std::unique_ptr<HttpServer> server;
  std::uint16_t port = 0;
};

/// A client that waits for its socket, in the clear or over TLS.
class TestClient {
 public:
  explicit TestClient(std::uint16_t port, const TlsContext* tls = nullptr, const std::string& host = "127.0.0.1") {
    auto socket = connect_to("127.0.0.1", port);
    EXPECT_TRUE(socket);
    wait(socket->fd(), POLLOUT);
    stream_ = tls != nullptr ? tls->connect_stream(*std::move(socket), host) : make_plain_stream(*std::move(socket));
    ByteStream::Step step = stream_->handshake();
    while (wait_for(step)) step = stream_->handshake();
    connected_ = step == ByteStream::Step::kDone;
  }

  bool connected() const { return connected_; }

  const std::string& problem() const { return stream_->problem(); }

  ByteStream& stream() { return *stream_; }

  /// Sends text. False: the server has closed the connection.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ByteStream::Moved moved = stream_->write(text);
      if (moved.step == ByteStream::Step::kDone)
        text.remove_prefix(moved.bytes);
      else if (!wait_for(moved.step))
        return false;
    }
    return true;
  }

  /// Appends received bytes to `received`; false at the end.
  bool receive() {
    std::array<char, 16 * 1024> buffer;
    for (;;) {
      const ByteStream::Moved moved = stream_->read(buffer);
      if (moved.step == ByteStream::Step::kDone) {
        received.append(buffer.data(), moved.bytes);
        return true;
      }
      if (!wait_for(moved.step)) return false;
    }
  }

  /// Reads until `text` has arrived.
  bool receive_until(std::string_view text) {
    while (received.find(text) == std::string::npos) {
      if (!receive()) return false;
    }
    return true;
  }

  /// Reads to the end of the connection.
  void drain() {
    while (receive()) {
    }
  }

  /// The next whole answer; status 0 if the connection ended before.
  api::Response answer(api::Method to = api::Method::kGet) {
    ResponseParser parser(to);
    api::Response whole;
    for (;;) {
      auto step = parser.feed(received);
      if (!step) {
        ADD_FAILURE() << step.error().text();
        break;
      }
      whole.body += parser.take_body();
      if (*step == ResponseParser::Step::kDone) break;
      if (receive()) continue;
      if (!parser.finish()) return api::Response{0, {}, {}};
      break;
    }
    whole.status = parser.head().status;
    whole.headers = parser.head().headers;
    return whole;
  }

  std::string received;

 private:
  static bool wait(int fd, short events) {
    pollfd waiting{fd, events, 0};
    const bool ready = ::poll(&waiting, 1, kPatienceMs) == 1;
    EXPECT_TRUE(ready) << "nothing happened on the connection";
    return ready;
  }

  bool wait_for(ByteStream::Step step) const {
    if (step == ByteStream::Step::kWaitRead) return wait(stream_->socket().fd(), POLLIN);
    if (step == ByteStream::Step::kWaitWrite) return wait(stream_->socket().fd(), POLLOUT);
    return false;
  }

  std::unique_ptr<ByteStream> stream_;
  bool connected_ = false;
};

inline std::shared_ptr<const std::string> shared(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

inline std::string get(std::string_view target, std::string_view headers = "") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n", target, headers);
}

inline std::string post(std::string_view target, std::string_view body) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", target, body.size(), body);
}

/// The message of a Status body.
inline std::string status_message(const api::Response& response) {
  const auto document = api::parse_json(response.body);
  EXPECT_TRUE(document) << response.body;
  if (!document) return {};
  EXPECT_EQ(document->string_at({"kind"}), "Status");
  return std::string(document->string_at({"message"}));
}

}  // namespace spillway::wire
