#include "host/streams/relay_session.h"

#include "base/ascii.h"
#include "base/file.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::size_t kRelayBytesMax = 65'536;  // read in one turn of the loop
constexpr std::size_t kRefusalBytesMax = 4096;
constexpr std::size_t kPathBytesMax = 1024;
constexpr Duration kRelayPaceInterval = milliseconds(10);
constexpr std::string_view kEndOfHead = "\r\n\r\n";

/// The status code in "HTTP/1.1 101 Switching Protocols": 101; 0: malformed.
int status_in(std::string_view head) {
  int status = 0;
  if (!head.starts_with("HTTP/1.") || head.size() < 12) return 0;
  const auto [end, error] = std::from_chars(head.data() + 9, head.data() + 12, status);
  return error == std::errc() && end == head.data() + 12 ? status : 0;
}

std::string header_in(std::string_view head, std::string_view name) {
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(head.size(), line.size() + 2));
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && equal_ignoring_case(line.substr(0, colon), name))
      return std::string(trimmed(line.substr(colon + 1)));
  }
  return {};
}

Result<UniqueFd> begin_connecting(const StreamAddress& address) {
  UniqueFd made(::socket(address.six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return errno_error("socket", errno);
  sockaddr_in6 six = {};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(address.port);
  six.sin6_addr = in6addr_loopback;
  sockaddr_in four = {};
  four.sin_family = AF_INET;
  four.sin_port = htons(address.port);
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* to = address.six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  if (::connect(made.get(), to, address.six ? sizeof six : sizeof four) != 0 && errno != EINPROGRESS)
    return errno_error("streams of the container runtime", errno);
  return made;
}

int status_of_refusal(const Error& error) {
  if (error.code == ErrorCode::kNotFound) return 404;
  return error.at == "ResourceExhausted" ? 429 : 500;
}

}  // namespace

Result<StreamAddress> parse_stream_address(std::string_view url) {
  const auto refused = [&] {
    return invalid("streams of the container runtime", "\"{}\" is no address of this machine's loopback", url);
  };
  StreamAddress address;
  std::string_view rest = url;
  constexpr std::string_view kScheme = "http://";
  if (!rest.starts_with(kScheme)) return refused();
  rest.remove_prefix(kScheme.size());
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos || rest.size() - slash > kPathBytesMax) return refused();
  const std::string_view place = rest.substr(0, slash);
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) return refused();
  const std::string_view host = place.substr(0, colon);
  address.six = host == "[::1]";
  if (!address.six && host != "127.0.0.1" && host != "localhost") return refused();
  const auto [end, error] = std::from_chars(place.data() + colon + 1, place.data() + place.size(), address.port);
  if (error != std::errc() || end != place.data() + place.size() || address.port == 0) return refused();
  address.path = rest.substr(slash);
  if (std::ranges::any_of(address.path, [](char c) { return c <= ' ' || c > '~'; })) return refused();
  return address;
}

RelaySession::RelaySession(runtime::Loop& loop, RelayedClient client) : loop_(loop), client_(std::move(client)) {}

RelaySession::~RelaySession() {
  release();
}

void RelaySession::open() {
  active_ = loop_.now().mono;
  time_out_ = loop_.at(active_ + kAgreeMax, [this] {
    time_out_.reset();
    const auto self = shared_from_this();
    refuse(500, "the container runtime does not serve the stream in time");
  });
}

void RelaySession::connect(const Result<std::string>& url) {
  if (over()) return;
  if (!url) return refuse(status_of_refusal(url.error()), url.error().text());
  Result<StreamAddress> address = parse_stream_address(*url);
  if (!address) return refuse(500, address.error().text());
  address_ = *std::move(address);
  Result<UniqueFd> made = begin_connecting(address_);
  if (!made) return refuse(500, made.error().text());
  server_ = *std::move(made);
  to_server_ = fmt::format("POST {} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n",
                           address_.path, address_.port);
  for (const std::string& offer : client_.offers) to_server_ += fmt::format("X-Stream-Protocol-Version: {}\r\n", offer);
  to_server_ += "Content-Length: 0\r\n\r\n";
  watch();
}

void RelaySession::watch() {
  if (!server_) return;
  short wanted = 0;
  if (!connected_ || !to_server_.empty()) wanted |= POLLOUT;
  if (connected_ && !pace_timer_) wanted |= POLLIN;
  if (wanted == 0) {
    if (std::exchange(watched_, false)) loop_.unwatch_fd(server_.get());
    return;
  }
  if (std::exchange(watched_, true)) return loop_.rewatch_fd(server_.get(), wanted);
  loop_.watch_fd(server_.get(), wanted, [this] {
    const auto self = weak_from_this().lock();
    on_ready();
  });
}

void RelaySession::on_ready() {
  if (!connected_ && !finish_connecting()) return;
  write_server();
  if (!over() && !is_full()) read_server();
  if (over()) return;
  if (is_full()) pace();
  watch();
}

bool RelaySession::finish_connecting() {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(server_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  connected_ = error == 0;
  if (!connected_) refuse(500, errno_error("streams of the container runtime", error).text());
  return connected_;
}

/// The client is behind: nothing is read until it has caught up.
void RelaySession::pace() {
  if (pace_timer_) return;
  pace_timer_ = loop_.at(loop_.now().mono + kRelayPaceInterval, [this] {
    pace_timer_.reset();
    if (is_full()) return pace();
    watch();
  });
}

void RelaySession::write_server() {
  while (!to_server_.empty()) {
    const ssize_t sent = ::send(server_.get(), to_server_.data(), to_server_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) {  // the server is gone; its earlier output must still be read
      to_server_.clear();
      break;
    }
    to_server_.erase(0, static_cast<std::size_t>(sent));
  }
  if (unused_ == 0 || !client_.sink) return;
  const auto sink = client_.sink;
  sink->on_input_used(std::exchange(unused_, 0));
}

void RelaySession::read_server() {
  std::array<char, 16'384> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (std::size_t total = 0; total < kRelayBytesMax && !over();) {
    const ssize_t got = ::recv(server_.get(), chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return finish();
    total += static_cast<std::size_t>(got);
    active_ = loop_.now().mono;
    const std::string_view bytes(chunk.data(), static_cast<std::size_t>(got));
    if (upgraded_) {
      take(bytes);
    } else {
      head_ += bytes;
      take_head();
    }
  }
}

void RelaySession::take_head() {
  const std::size_t end = head_.find(kEndOfHead);
  if (end == std::string::npos) {
    if (head_.size() > kHeadMax) refuse(500, "invalid upgrade response: its head is too long");
    return;
  }
  const std::string head = head_.substr(0, end);
  const std::string rest = std::exchange(head_, std::string()).substr(end + kEndOfHead.size());
  const int status = status_in(head);
  if (status >= 400) return refuse(status, rest.substr(0, kRefusalBytesMax));
  if (status != 101) return refuse(500, fmt::format("invalid upgrade response: status code {}", status));
  if (time_out_) loop_.cancel(*time_out_);
  time_out_.reset();
  arm_idle_timer();
  if (client_.names_protocol)
    client_.head.headers.emplace_back("X-Stream-Protocol-Version", header_in(head, "x-stream-protocol-version"));
  upgraded_ = true;
  const auto sink = client_.sink;
  sink->on_upgrade(std::move(client_.head), shared_from_this());
  if (over()) return;
  if (client_.translation->readiness() == api::Readiness::kCertain) {
    begin();
  } else {
    begin_timer_ = loop_.at(active_ + api::kLikelyReadyWait, [this] {
      begin_timer_.reset();
      const auto self = shared_from_this();
      begin();
      if (!over()) on_ready();
    });
  }
  if (!rest.empty() && !over()) take(rest);
}

void RelaySession::begin() {
  if (std::exchange(begun_, true)) return;
  if (begin_timer_) loop_.cancel(*begin_timer_);
  begin_timer_.reset();
  to_server_ += client_.translation->opening();
  send_to_client(client_.translation->greeting());
}

void RelaySession::arm_idle_timer() {
  time_out_ = loop_.at(active_ + idle_max(), [this] {
    time_out_.reset();
    if (loop_.now().mono - active_ < idle_max()) return arm_idle_timer();
    const auto self = shared_from_this();
    cut();
  });
}

void RelaySession::take(std::string_view bytes) {
  auto translated = client_.translation->to_client(bytes, to_server_);
  if (!translated) return cut();
  send_to_client(*std::move(translated));
}

void RelaySession::on_input(std::string bytes) {
  if (over()) return;
  const auto self = shared_from_this();
  active_ = loop_.now().mono;
  unused_ += bytes.size();
  std::string reply;
  auto translated = client_.translation->to_server(bytes, reply);
  send_to_client(std::move(reply));
  if (!translated) return cut();
  if (client_.translation->readiness() == api::Readiness::kCertain) begin();
  if (over()) return;
  to_server_ += *translated;
  write_server();
  watch();
}

void RelaySession::send_to_client(std::string bytes) {
  if (over() || bytes.empty()) return;
  const auto sink = client_.sink;
  if (!sink->write(std::make_shared<const std::string>(std::move(bytes)))) cut();
}

void RelaySession::refuse(int status, const std::string& why) {
  if (over()) return;
  if (upgraded_) return cut();
  const auto sink = std::exchange(client_.sink, nullptr);
  release();
  refuse_stream(*sink, status, why);
}

/// The server has ended the connection.
void RelaySession::finish() {
  if (!upgraded_) return refuse(500, "invalid upgrade response: none");
  send_to_client(client_.translation->farewell());
  cut();
}

void RelaySession::cut() {
  const auto sink = std::exchange(client_.sink, nullptr);
  release();
  if (sink == nullptr) return;
  if (upgraded_) return sink->on_end();
  refuse_stream(*sink, 503, "the node agent ends");
}

void RelaySession::release() {
  for (std::optional<runtime::Loop::TimerId>* timer : {&pace_timer_, &begin_timer_, &time_out_}) {
    if (*timer) loop_.cancel(**timer);
    timer->reset();
  }
  if (std::exchange(watched_, false)) loop_.unwatch_fd(server_.get());
  server_.reset();
}

}  // namespace spillway::host
