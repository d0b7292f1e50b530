#include "host/probes/network_prober.h"

#include "host/probes/http_answer_reader.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::size_t kChunk = 16 * 1024;
constexpr std::string_view kTooLate = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";

/// The kernel's error text in the form that other agents use: "connection refused".
std::string reason_of(int error) {
  std::string text = std::strerror(error);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string address_text(const std::string& host, std::uint16_t port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

std::optional<Address> address_of(const std::string& host, std::uint16_t port) {
  Address made;
  const std::string text = host == "localhost" ? "127.0.0.1" : host;
  auto* four = reinterpret_cast<sockaddr_in*>(&made.storage);
  if (::inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    made.size = sizeof(sockaddr_in);
    return made;
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(&made.storage);
  if (::inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) != 1) return std::nullopt;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(port);
  made.size = sizeof(sockaddr_in6);
  return made;
}

/// Compares the next bytes without consuming them.
bool begins_with(int socket, std::string_view text) {
  std::array<char, 8> first{};
  const ssize_t seen = ::recv(socket, first.data(), text.size(), MSG_PEEK | MSG_DONTWAIT);
  return seen == static_cast<ssize_t>(text.size()) && std::string_view(first.data(), text.size()) == text;
}

std::string request_text(const containers::HttpAsk& ask) {
  std::string host = address_text(ask.host, ask.port);
  std::string headers;
  for (const auto& [name, value] : ask.headers) {
    if (name == "Host") {
      if (!value.empty()) host = value;
      continue;
    }
    if (name == "Connection" || name == "Content-Length" || name == "Transfer-Encoding") continue;
    headers += fmt::format("{}: {}\r\n", name, value);
  }
  const std::string_view slash = ask.target.starts_with('/') ? "" : "/";
  return fmt::format("GET {}{} HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\r\n", slash, ask.target, host, headers);
}

}  // namespace

struct NetworkProber::Attempt {
  UniqueFd fd;
  std::string host;
  std::uint16_t port = 0;
  std::string url;  // empty: a connection is all that is wanted
  std::string request;
  std::size_t sent = 0;
  bool connected = false;
  bool tls = false;
  std::unique_ptr<SecureStream> stream;  // over `fd`
  bool secured = false;
  HttpAnswerReader reader{kHeadMax, containers::kProbeOutputMax};
  runtime::Loop::TimerId timer = 0;

  bool is_http() const { return !url.empty(); }

  /// The text of a failure, which begins with the place of the failure.
  std::string text_of(const std::string& why) const {
    const std::string where = connected ? std::string() : fmt::format("dial tcp {}: ", address_text(host, port));
    return is_http() ? fmt::format("Get \"{}\": {}{}", url, where, why) : where + why;
  }
};

NetworkProber::NetworkProber(runtime::Loop& loop, std::function<void(agent::HostEvent)> emit, SecureStreams secure)
    : loop_(loop), emit_(std::move(emit)), secure_(std::move(secure)) {}

NetworkProber::~NetworkProber() {
  while (!attempts_.empty()) take(attempts_.begin()->first);
}

void NetworkProber::ask(const agent::AskHttp& command) {
  auto attempt = std::make_unique<Attempt>();
  attempt->host = command.ask.host;
  attempt->port = command.ask.port;
  attempt->url = command.ask.url();
  attempt->request = request_text(command.ask);
  attempt->tls = command.ask.tls;
  if (attempt->tls && !secure_) {
    emit_(agent::HttpAnswered{command.id, invalid({}, "Get \"{}\": HTTPS probes are not supported", attempt->url)});
    return;
  }
  begin(command.id, std::move(attempt), command.timeout);
}

void NetworkProber::connect(const agent::TryTcp& command) {
  auto attempt = std::make_unique<Attempt>();
  attempt->host = command.host;
  attempt->port = command.port;
  begin(command.id, std::move(attempt), command.timeout);
}

void NetworkProber::begin(std::uint64_t id, std::unique_ptr<Attempt> attempt, Duration timeout) {
  Attempt& made = *attempts_.insert_or_assign(id, std::move(attempt)).first->second;
  if (attempts_.size() > kAttemptsMax) return fail(id, "too many probes are under way");
  const auto address = address_of(made.host, made.port);
  if (!address) return fail(id, fmt::format("lookup {}: names are not resolved", made.host));
  made.fd = UniqueFd(::socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made.fd) return fail(id, reason_of(errno));
  const int outcome = ::connect(made.fd.get(), reinterpret_cast<const sockaddr*>(&address->storage), address->size);
  if (outcome != 0 && errno != EINPROGRESS) return fail(id, fmt::format("connect: {}", reason_of(errno)));
  loop_.watch_fd(made.fd.get(), POLLOUT, [this, id] { on_ready(id); });
  made.timer = loop_.at(loop_.now().mono + timeout, [this, id] {
    const auto found = attempts_.find(id);
    if (found != attempts_.end()) fail(id, found->second->is_http() ? std::string(kTooLate) : "i/o timeout");
  });
}

void NetworkProber::on_ready(std::uint64_t id) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) return;
  Attempt& attempt = *found->second;
  if (!attempt.connected) return on_connected(id, attempt);
  if (attempt.stream && !attempt.secured) return handshake(id, attempt);
  attempt.sent < attempt.request.size() ? send(id, attempt) : receive(id, attempt);
}

void NetworkProber::on_connected(std::uint64_t id, Attempt& attempt) {
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(attempt.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return fail(id, fmt::format("connect: {}", reason_of(error)));
  attempt.connected = true;
  if (attempt.tls) return secure(id, attempt);
  if (attempt.is_http()) return send(id, attempt);
  take(id);
  emit_(agent::TcpTried{id, {}});
}

void NetworkProber::secure(std::uint64_t id, Attempt& attempt) {
  UniqueFd same(::fcntl(attempt.fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!same) return fail(id, reason_of(errno));
  attempt.stream = secure_(std::move(same));
  if (!attempt.stream) return fail(id, "TLS is not available");
  handshake(id, attempt);
}

void NetworkProber::handshake(std::uint64_t id, Attempt& attempt) {
  // A server without TLS answers in plain HTTP.
  if (begins_with(attempt.fd.get(), "HTTP/")) return fail(id, std::string(containers::kHttpForHttps));
  const SecureStream::Step step = attempt.stream->handshake();
  // The head of a record, five bytes, has been read by then.
  if (step == SecureStream::Step::kFailed && begins_with(attempt.fd.get(), "1."))
    return fail(id, std::string(containers::kHttpForHttps));
  if (!on_step(id, attempt, step)) return;
  attempt.secured = true;
  send(id, attempt);
}

bool NetworkProber::on_step(std::uint64_t id, Attempt& attempt, SecureStream::Step step) {
  switch (step) {
    case SecureStream::Step::kDone:
      return true;
    case SecureStream::Step::kWaitRead:
      loop_.rewatch_fd(attempt.fd.get(), POLLIN);
      return false;
    case SecureStream::Step::kWaitWrite:
      loop_.rewatch_fd(attempt.fd.get(), POLLOUT);
      return false;
    case SecureStream::Step::kEnd:
      if (attempt.secured && attempt.sent == attempt.request.size()) {
        Result<containers::HttpAnswer> last = attempt.reader.end();
        last ? answer(id, *std::move(last)) : fail(id, last.error().message);
      } else {
        fail(id, "EOF");
      }
      return false;
    case SecureStream::Step::kFailed:
      fail(id, "tls: " + attempt.stream->problem());
      return false;
  }
  return false;
}

void NetworkProber::send(std::uint64_t id, Attempt& attempt) {
  while (attempt.sent < attempt.request.size()) {
    if (attempt.stream) {
      const auto moved = attempt.stream->write(std::string_view(attempt.request).substr(attempt.sent));
      if (!on_step(id, attempt, moved.step)) return;
      attempt.sent += moved.bytes;
      continue;
    }
    const ssize_t count = ::send(attempt.fd.get(), attempt.request.data() + attempt.sent,
                                 attempt.request.size() - attempt.sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count < 0) return fail(id, fmt::format("write: {}", reason_of(errno)));
    attempt.sent += static_cast<std::size_t>(count);
  }
  loop_.rewatch_fd(attempt.fd.get(), POLLIN);
  if (attempt.stream) receive(id, attempt);  // data may have arrived with the handshake
}

void NetworkProber::receive(std::uint64_t id, Attempt& attempt) {
  std::array<char, kChunk> buffer{};
  while (attempt.stream) {
    const auto moved = attempt.stream->read(buffer);
    if (!on_step(id, attempt, moved.step)) return;
    auto read = attempt.reader.add(std::string_view(buffer.data(), moved.bytes));
    if (!read) return fail(id, read.error().message);
    if (*read) return answer(id, **std::move(read));
  }
  const ssize_t count = ::recv(attempt.fd.get(), buffer.data(), buffer.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (count < 0) return fail(id, fmt::format("read: {}", reason_of(errno)));
  if (count == 0) {
    Result<containers::HttpAnswer> last = attempt.reader.end();
    return last ? answer(id, *std::move(last)) : fail(id, last.error().message);
  }
  auto read = attempt.reader.add(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
  if (!read) return fail(id, read.error().message);
  if (*read) answer(id, **std::move(read));
}

void NetworkProber::fail(std::uint64_t id, const std::string& text) {
  const auto attempt = take(id);
  const Error why = make_error(ErrorCode::kServiceUnavailable, "{}", attempt->text_of(text));
  if (attempt->is_http()) {
    emit_(agent::HttpAnswered{id, why});
  } else {
    emit_(agent::TcpTried{id, why});
  }
}

void NetworkProber::answer(std::uint64_t id, Result<containers::HttpAnswer> answer) {
  take(id);
  emit_(agent::HttpAnswered{id, std::move(answer)});
}

std::unique_ptr<NetworkProber::Attempt> NetworkProber::take(std::uint64_t id) {
  auto node = attempts_.extract(id);
  std::unique_ptr<Attempt> attempt = std::move(node.mapped());
  if (attempt->fd) loop_.unwatch_fd(attempt->fd.get());
  if (attempt->timer != 0) loop_.cancel(attempt->timer);
  return attempt;
}

}  // namespace spillway::host
