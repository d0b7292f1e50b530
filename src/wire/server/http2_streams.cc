#include "wire/server/http2_streams.h"

#include "wire/http/http_head.h"

namespace spillway::wire {

Http2Streams::~Http2Streams() {
  for (auto& [id, stream] : open_)
    if (stream.exchange) stream.exchange->gone = true;
}

Http2Streams::Stream& Http2Streams::open(StreamId id, const api::Request& head) {
  if (is_counted_) owner_.count_streams(+1);
  Stream& stream = open_.try_emplace(id, owner_.options().limits).first->second;
  stream.method = head.method;
  stream.gzip_offered = offers_gzip(head.header("accept-encoding"));
  return stream;
}

Http2Streams::Stream* Http2Streams::find(StreamId id) {
  const auto found = open_.find(id);
  return found == open_.end() ? nullptr : &found->second;
}

Http2Streams::Stream* Http2Streams::waiting_for(const std::shared_ptr<HttpExchange>& exchange) {
  Stream* stream = find(exchange->stream);
  return stream != nullptr && stream->exchange == exchange ? stream : nullptr;
}

bool Http2Streams::works_on_too_many() {
  std::erase_if(abandoned_, [](const auto& exchange) { return exchange.expired(); });
  return abandoned_.size() > Http2Bounds().streams_max;
}

bool Http2Streams::account(Stream& stream, std::size_t held) {
  const auto change = static_cast<std::ptrdiff_t>(held) - static_cast<std::ptrdiff_t>(stream.accounted);
  stream.accounted = held;
  return owner_.account(change, intake_.rank());
}

void Http2Streams::take(const Stream& stream, std::size_t bytes) {
  if (stream.exchange && stream.exchange->take(bytes)) owner_.report_room(stream.exchange);
}

void Http2Streams::drop_exchange(Stream& stream) {
  if (!stream.exchange) return;
  stream.exchange->gone = true;
  abandoned_.push_back(stream.exchange);
  owner_.report_gone(std::move(stream.exchange));
  stream.exchange.reset();
}

void Http2Streams::drop_exchanges() {
  for (auto& [id, stream] : open_) drop_exchange(stream);
}

bool Http2Streams::close(StreamId id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return false;
  Stream& stream = found->second;
  if (stream.answered) stream.exchange.reset();  // complete, or as good as that
  drop_exchange(stream);
  static_cast<void>(account(stream, 0));  // fewer always fit
  open_.erase(found);
  if (is_counted_) owner_.count_streams(-1);
  return true;
}

void Http2Streams::close_all() {
  for (auto& [id, stream] : open_) {
    drop_exchange(stream);
    static_cast<void>(account(stream, 0));
    stream.body.clear();
  }
  owner_.count_streams(-static_cast<int>(open_.size()));
  is_counted_ = false;
}

std::vector<Http2Streams::Overdue> Http2Streams::overdue(Instant now) {
  const bool pressed = owner_.answer_context()->ledger->pressed();
  std::vector<Overdue> found;
  for (auto& [id, stream] : open_) {
    if (stream.body_due && *stream.body_due <= now) found.push_back({id, Refusal::kRequestTime});
    if (stream.body.empty()) {
      stream.stall.end();
    } else if (!stream.stall.due()) {
      stream.stall.begin(now, stream.taken_bytes);
    } else if (*stream.stall.due() <= now && stream.stall.is_stalled(now, stream.taken_bytes, pressed)) {
      if (stream.streams) owner_.count_slow_stream();
      found.push_back({id, Refusal::kStalled});
    }
  }
  return found;
}

}  // namespace spillway::wire
