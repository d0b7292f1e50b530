#include "wire/server/connection_handshake.h"

#include "runtime/clock.h"

#include <poll.h>

#include <utility>

namespace spillway::wire {

ConnectionHandshake::ConnectionHandshake(std::uint64_t id, ConnectionOwner& owner, std::unique_ptr<ByteStream> stream,
                                         std::string address)
    : id_(id), owner_(owner), stream_(std::move(stream)), address_(std::move(address)) {}

void ConnectionHandshake::start() {
  interest_ = POLLIN;
  owner_.loop()->watch_fd(stream_->socket().fd(), interest_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_ready();
  });
  timer_ = owner_.loop()->at(runtime::RealClock::read_mono() + owner_.options().limits.handshake_max,
                             [weak = weak_from_this()] {
                               const auto self = weak.lock();
                               if (!self || !self->stream_) return;
                               self->owner_.answer_context()->refusals->count(Refusal::kHandshakeTime, self->address_,
                                                                              runtime::RealClock::read_mono());
                               self->close();
                             });
  on_ready();
}

void ConnectionHandshake::on_ready() {
  const auto self = shared_from_this();  // the owner may release its reference
  if (!stream_) return;
  const ByteStream::Step step = stream_->handshake();
  if (step == ByteStream::Step::kDone) {
    unwatch();
    return owner_.on_established(id_, std::move(stream_), std::move(address_));
  }
  if (step == ByteStream::Step::kEnd || step == ByteStream::Step::kFailed) {
    owner_.options().log.debug("tls handshake failed", {{"err", stream_->problem()}});
    return close();
  }
  const short interest = step == ByteStream::Step::kWaitWrite ? POLLIN | POLLOUT : POLLIN;
  if (interest == std::exchange(interest_, interest)) return;
  owner_.loop()->rewatch_fd(stream_->socket().fd(), interest);
}

void ConnectionHandshake::unwatch() {
  owner_.loop()->cancel(timer_);
  owner_.loop()->unwatch_fd(stream_->socket().fd());
}

void ConnectionHandshake::close() {
  if (!stream_) return;
  const auto self = shared_from_this();
  unwatch();
  stream_.reset();
  owner_.on_closed(id_);
}

}  // namespace spillway::wire
