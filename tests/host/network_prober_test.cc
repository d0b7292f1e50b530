// Goal: probes over the network end once and in time, whatever the other side does.
#include "host/probes/network_prober.h"

#include "host/probes/http_answer_reader.h"
#include "support/patience.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

namespace spillway::host {
namespace {

using containers::HttpAnswer;

HttpAnswer whole(std::string_view text, std::size_t piece) {
  HttpAnswerReader reader(1024, 16);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    auto read = reader.add(text.substr(at, piece));
    EXPECT_TRUE(read) << read.error().message;
    if (read && *read) return **read;
  }
  auto last = reader.end();
  EXPECT_TRUE(last) << text;
  return last ? *last : HttpAnswer{};
}

TEST(HttpAnswerReader, UnderstandsEveryWayToEnd) {
  struct Row {
    std::string_view text;
    int status;
    std::string_view body;
  };

  for (const Row& row :
       {Row{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
        Row{"HTTP/1.0 503 No\r\n\r\nnot ready", 503, "not ready"}, Row{"HTTP/1.1 204 None\r\n\r\n", 204, ""},
        Row{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:1\r\n\r\nx", 200, "x"},
        Row{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", 200, "abcde"},
        Row{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789abcdefghi", 200, "0123456789abcdef"}}) {
    for (const std::size_t piece : {1, 3, 1000}) {
      const HttpAnswer answer = whole(row.text, piece);
      EXPECT_EQ(answer.status, row.status) << row.text;
      EXPECT_EQ(answer.body, row.body) << row.text;
    }
  }
  EXPECT_EQ(whole("HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n", 5).location, "/there");
}

TEST(HttpAnswerReader, IsFinishedWithWhatSaysNothingAtLength) {
  HttpAnswerReader reader(1024, 16);
  ASSERT_TRUE(reader.add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;"));
  std::optional<HttpAnswer> answer;
  for (int i = 0; i < 100 && !answer; ++i) answer = *reader.add(std::string(64, 'x'));
  ASSERT_TRUE(answer) << "a chunk whose line never ends";
  EXPECT_EQ(answer->status, 200);
}

TEST(HttpAnswerReader, RefusesWhatIsNoAnswer) {
  for (const std::string_view text :
       {"SSH-2.0-x\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 99 x\r\n\r\n", "HTTP/2 200\r\n\r\n"})
    EXPECT_FALSE(HttpAnswerReader(1024, 16).add(text)) << text;
  EXPECT_FALSE(HttpAnswerReader(64, 16).add(std::string(100, 'x')));
  EXPECT_FALSE(HttpAnswerReader(64, 16).end());
  HttpAnswerReader cut(1024, 16);
  EXPECT_TRUE(cut.add("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"));
  EXPECT_FALSE(cut.end());
}

/// A server that takes one connection, sends a text and closes, or waits until the test is over.
class Server {
 public:
  enum class Listens { kYes, kNo };

  /// Without listening the port is taken, so that no other program answers on it, and connections are refused.
  explicit Server(std::optional<std::string> says, Listens listens = Listens::kYes) {
    socket_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    if (listens == Listens::kNo) return;
    EXPECT_EQ(::listen(socket_.get(), 4), 0);
    if (!says) return;
    thread_ = std::thread([this, text = *says] {
      const UniqueFd peer(::accept(socket_.get(), nullptr, nullptr));
      char buffer[4096];
      ssize_t count = ::recv(peer.get(), buffer, sizeof(buffer), 0);
      if (count > 0) request_.assign(buffer, static_cast<std::size_t>(count));
      static_cast<void>(::send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL));
      ::shutdown(peer.get(), SHUT_WR);
      // Unread data make the kernel reset the connection, and the answer may be lost.
      while (count > 0) count = ::recv(peer.get(), buffer, sizeof(buffer), 0);
    });
  }

  ~Server() { join(); }

  std::uint16_t port() const { return port_; }

  const std::string& request() {
    join();
    return request_;
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  UniqueFd socket_;
  std::uint16_t port_ = 0;
  std::string request_;
  std::thread thread_;
};

struct Probing {
  runtime::Loop loop;
  std::optional<agent::HostEvent> event;
  NetworkProber prober{loop, [this](agent::HostEvent happened) {
                         event = std::move(happened);
                         loop.stop();
                       }};

  template <typename Event>
  Event wait() {
    if (!event) loop.run({});
    return std::get<Event>(*event);
  }

  Result<HttpAnswer> get(std::uint16_t port, Duration timeout = support::kPatience) {
    containers::HttpAsk ask;
    ask.host = "127.0.0.1";
    ask.port = port;
    ask.target = "/x?y";
    ask.headers = {{"Host", "pod.example"}, {"User-Agent", "kube-probe/1.36"}};
    prober.ask({.id = 7, .ask = ask, .timeout = timeout});
    return wait<agent::HttpAnswered>().answer;
  }
};

TEST(NetworkProber, SendsAndReceives) {
  Server server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  const auto answer = Probing().get(server.port());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "ok");
  EXPECT_EQ(server.request(),
            "GET /x?y HTTP/1.1\r\nHost: pod.example\r\nUser-Agent: kube-probe/1.36\r\nConnection: close\r\n\r\n");
}

TEST(NetworkProber, SaysWhyThereIsNoAnswer) {
  Server silent(std::nullopt);
  const std::string url = "Get \"http://127.0.0.1:" + std::to_string(silent.port()) + "/x?y\": ";
  // On a busy machine the time may be over before the prober has seen that it is connected.
  std::string late = "dial tcp";
  for (Duration limit = milliseconds(20); late.contains("dial tcp"); limit *= 2) {
    ASSERT_LT(limit, support::kPatience) << late;
    late = Probing().get(silent.port(), limit).error().message;
  }
  EXPECT_EQ(late, url + "context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
  Server rude("220 mail\r\n\r\n");
  EXPECT_TRUE(Probing().get(rude.port()).error().message.contains("malformed HTTP response"));
  const Server closed(std::nullopt, Server::Listens::kNo);
  const std::string address = "127.0.0.1:" + std::to_string(closed.port());
  EXPECT_EQ(Probing().get(closed.port()).error().message,
            "Get \"http://" + address + "/x?y\": dial tcp " + address + ": connect: connection refused");
}

TEST(NetworkProber, ConnectsOrSaysWhyNot) {
  Server server(std::nullopt);
  Probing open;
  open.prober.connect({.id = 1, .host = "127.0.0.1", .port = server.port(), .timeout = support::kPatience});
  EXPECT_TRUE(open.wait<agent::TcpTried>().outcome);
  Probing named;
  named.prober.connect({.id = 1, .host = "no.example", .port = server.port(), .timeout = support::kPatience});
  EXPECT_TRUE(named.wait<agent::TcpTried>().outcome.error().message.contains("names are not resolved"));
}

/// TLS for tests: every byte is shifted by one.
class Shifted final : public SecureStream {
 public:
  enum class Hello { kUnsent, kSent };

  Shifted(UniqueFd socket, Hello hello) : socket_(std::move(socket)), hello_(hello) {}

  Step handshake() override {
    if (++tries_ > 1) return Step::kDone;
    if (hello_ == Hello::kUnsent) return Step::kWaitWrite;
    return ::send(socket_.get(), "hello", 5, MSG_NOSIGNAL) == 5 ? Step::kWaitRead : Step::kFailed;
  }

  Moved read(std::span<char> into) override {
    const ssize_t count = ::recv(socket_.get(), into.data(), std::min<std::size_t>(into.size(), 7), 0);
    if (count < 0) return {errno == EAGAIN ? Step::kWaitRead : Step::kFailed};
    if (count == 0) return {Step::kEnd};
    for (char& c : into.first(static_cast<std::size_t>(count))) --c;
    return {Step::kDone, static_cast<std::size_t>(count)};
  }

  Moved write(std::string_view from) override {
    std::string text(from.substr(0, 5));
    for (char& c : text) ++c;
    const ssize_t count = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0) return {errno == EAGAIN ? Step::kWaitWrite : Step::kFailed};
    return {Step::kDone, static_cast<std::size_t>(count)};
  }

  std::string problem() const override { return {}; }

 private:
  UniqueFd socket_;
  Hello hello_;
  int tries_ = 0;
};

std::string shifted(std::string text) {
  for (char& c : text) ++c;
  return text;
}

struct SecureProbing : Probing {
  using Hello = Shifted::Hello;

  explicit SecureProbing(Hello how = Hello::kUnsent) : hello(how) {}

  Hello hello;
  NetworkProber secure{loop,
                       [this](agent::HostEvent happened) {
                         event = std::move(happened);
                         loop.stop();
                       },
                       [this](UniqueFd socket) { return std::make_unique<Shifted>(std::move(socket), hello); }};

  Result<HttpAnswer> get_securely(std::uint16_t port) {
    containers::HttpAsk ask;
    ask.tls = true;
    ask.host = "127.0.0.1";
    ask.port = port;
    secure.ask({.id = 7, .ask = ask, .timeout = support::kPatience});
    return wait<agent::HttpAnswered>().answer;
  }
};

TEST(NetworkProber, AsksOverASecureStream) {
  Server server(shifted("HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\nabcdefghijklmnopqrstuvwxyz"));
  const auto answer = SecureProbing().get_securely(server.port());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "abcdefghijklmnopqrstuvwxyz");
  EXPECT_TRUE(server.request().starts_with(shifted("GET "))) << server.request();
  Server until_end(shifted("HTTP/1.0 503 No\r\n\r\nnot ready"));
  const auto last = SecureProbing().get_securely(until_end.port());
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(last->body, "not ready");
}

TEST(NetworkProber, ReportsThatAServerSpeaksHttpOnly) {
  Server plain("HTTP/1.0 400 Bad Request\r\n\r\n");
  SecureProbing probing(SecureProbing::Hello::kSent);
  EXPECT_EQ(probing.get_securely(plain.port()).error().message,
            "Get \"https://127.0.0.1:" + std::to_string(plain.port()) +
                "\": http: server gave HTTP response to HTTPS client");
}

}  // namespace
}  // namespace spillway::host
