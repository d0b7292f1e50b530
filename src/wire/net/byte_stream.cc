#include "wire/net/byte_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace spillway::wire {

namespace {

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(Socket socket) : ByteStream(std::move(socket)) {}

  Step handshake() override { return Step::kDone; }

  Moved read(std::span<char> into) override {
    const ssize_t got = ::recv(socket().fd(), into.data(), into.size(), 0);
    if (got > 0) return {Step::kDone, static_cast<std::size_t>(got)};
    if (got == 0) return {Step::kEnd};
    if (errno == EAGAIN || errno == EINTR) return {Step::kWaitRead};
    return {fail(std::generic_category().message(errno))};
  }

  Moved write(std::string_view from) override {
    const ssize_t sent = ::send(socket().fd(), from.data(), from.size(), MSG_NOSIGNAL);
    if (sent >= 0) return {Step::kDone, static_cast<std::size_t>(sent)};
    if (errno == EAGAIN || errno == EINTR) return {Step::kWaitWrite};
    return {fail(std::generic_category().message(errno))};
  }

  void end_writing() override { ::shutdown(socket().fd(), SHUT_WR); }

  bool has_buffered() const override { return false; }
};

}  // namespace

std::unique_ptr<ByteStream> make_plain_stream(Socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace spillway::wire
