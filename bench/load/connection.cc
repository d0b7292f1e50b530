#include "load/connection.h"

#include "base/check.h"

#include <array>
#include <utility>

namespace spillway::load {

using Step = wire::ByteStream::Step;

void Connection::send(std::string text) {
  SPILLWAY_CHECK(state_ == State::kIdle);
  state_ = State::kBusy;
  output_ = std::move(text);
  written_ = 0;
  flush();
}

bool Connection::flush() {
  while (written_ < output_.size()) {
    const auto moved = stream_->write(std::string_view(output_).substr(written_));
    if (moved.step == Step::kWaitRead || moved.step == Step::kWaitWrite) return true;
    if (moved.step != Step::kDone) {
      lose(stream_->problem());
      return false;
    }
    written_ += moved.bytes;
  }
  return true;
}

void Connection::drive() {
  if (state_ == State::kHandshake) {
    const Step step = stream_->handshake();
    if (step == Step::kWaitRead || step == Step::kWaitWrite) return;
    if (step != Step::kDone) return lose(stream_->problem());
    state_ = State::kIdle;
    user_.on_idle(*this);
  }
  if (state_ != State::kLost && flush()) read();
}

void Connection::read() {
  static thread_local std::array<char, std::size_t{64} * 1024> buffer;
  while (state_ != State::kLost) {
    const auto moved = stream_->read(buffer);
    if (moved.step == Step::kWaitRead || moved.step == Step::kWaitWrite) return;
    if (moved.step != Step::kDone) return lose(moved.step == Step::kEnd ? "closed by the server" : stream_->problem());
    if (!reader_.feed({buffer.data(), moved.bytes}, *this)) return lose("the answer is no HTTP");
  }
}

void Connection::on_end() {
  if (state_ != State::kBusy) return;
  state_ = State::kIdle;
  user_.on_answer(*this);
  if (state_ == State::kIdle) user_.on_idle(*this);
}

void Connection::lose(std::string_view why) {
  if (std::exchange(state_, State::kLost) == State::kLost) return;
  user_.on_lost(*this, why);
}

}  // namespace spillway::load
