#include "apps/node/probe_streams.h"

#include "wire/tls/tls.h"

#include <utility>

namespace spillway::apps {
namespace {

host::SecureStream::Step step_of(wire::ByteStream::Step step) {
  using From = wire::ByteStream::Step;
  using To = host::SecureStream::Step;
  switch (step) {
    case From::kDone:
      return To::kDone;
    case From::kWaitRead:
      return To::kWaitRead;
    case From::kWaitWrite:
      return To::kWaitWrite;
    case From::kEnd:
      return To::kEnd;
    case From::kFailed:
      break;
  }
  return To::kFailed;
}

class ProbeStream final : public host::SecureStream {
 public:
  explicit ProbeStream(std::unique_ptr<wire::ByteStream> stream) : stream_(std::move(stream)) {}

  Step handshake() override { return step_of(stream_->handshake()); }

  Moved read(std::span<char> into) override {
    const auto moved = stream_->read(into);
    return {step_of(moved.step), moved.bytes};
  }

  Moved write(std::string_view from) override {
    const auto moved = stream_->write(from);
    return {step_of(moved.step), moved.bytes};
  }

  std::string problem() const override { return stream_->problem(); }

 private:
  std::unique_ptr<wire::ByteStream> stream_;
};

}  // namespace

host::SecureStreams probe_streams() {
  const auto context = wire::TlsContext::make_client({.authority_pem = {}, .verify = false, .identity = {}});
  if (!context) return {};
  return [tls = *context](UniqueFd socket) -> std::unique_ptr<host::SecureStream> {
    return std::make_unique<ProbeStream>(tls->connect_stream(wire::Socket(socket.release()), {}));
  };
}

}  // namespace spillway::apps
