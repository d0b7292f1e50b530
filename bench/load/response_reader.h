// Answers of an HTTP/1.1 server as they arrive, piece by piece: bodies with a length and chunked ones, which may be
// endless. Thread: one at a time. Source: RFC 9112, 6 and 7.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::load {

class ResponseReader {
 public:
  class Receiver {
   public:
    virtual ~Receiver() = default;
    virtual void on_head(int status) = 0;
    virtual void on_body(std::string_view piece) = 0;
    /// The answer is complete.
    virtual void on_end() = 0;
  };

  /// False: not HTTP, or a head over 64 KiB.
  bool feed(std::string_view bytes, Receiver& receiver);

 private:
  enum class State { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kTrailer };

  /// Takes bytes up to the end of a line; false: the line is incomplete.
  bool take_line(std::string_view& bytes);
  bool begin(Receiver& receiver);
  void take_body(std::string_view& bytes, Receiver& receiver);
  bool on_line(Receiver& receiver);

  State state_ = State::kHead;
  std::string line_;  // the line of the head that is not complete
  std::string head_;
  std::uint64_t left_ = 0;
};

}  // namespace spillway::load
