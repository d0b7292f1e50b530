#include "wire/transport/answer_decoder.h"

#include "api/json/json.h"
#include "api/schema/protobuf.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::size_t kLengthBytes = 4;

bool is_protobuf_type(std::string_view content_type) {
  return content_type.substr(0, content_type.find(';')) == api::kProtobufContentType;
}

Error unreadable(std::string_view why) {
  return make_error(ErrorCode::kInternalError, "the answer of the API server cannot be read: {}", why);
}

}  // namespace

void DecodingWish::apply(api::Request& request) const {
  if (!protobuf_ || request.method != api::Method::kGet) return;
  if (!request.target.starts_with("/api/") && !request.target.starts_with("/apis/")) return;
  const auto accept = std::ranges::find(request.headers, "accept", [](const auto& header) { return header.first; });
  if (accept == request.headers.end() || accept->second != kJson) return;
  accept->second = fmt::format("{}, {}", api::kProtobufContentType, kJson);
}

Result<api::Response> DecodingWish::decode(api::Response response) {
  on_status(response.status);
  if (!is_protobuf_type(response.header("content-type"))) return response;
  auto document = api::read_protobuf_answer(response.body);
  if (!document) {
    give_up();
    return unreadable(document.error().message);
  }
  response.body = response.ok() ? std::string() : api::to_text(*document);
  response.document = std::make_shared<const api::Json>(*std::move(document));
  return response;
}

void DecodingWish::on_status(int status) {
  if (status == 406 || status == 415) give_up();
}

void WatchDecoder::set_type(std::string_view content_type) {
  protobuf_ = is_protobuf_type(content_type);
}

Result<std::vector<WatchDecoder::Frame>> WatchDecoder::push(std::string_view data) {
  std::vector<Frame> frames;
  if (!protobuf_) {
    SPILLWAY_TRY(lines, lines_.push(data));
    for (FrameSplitter::Frame& line : lines) {
      const std::size_t bytes = line->size();
      frames.push_back({std::move(line), nullptr, bytes});
    }
    return frames;
  }
  partial_.append(data);
  std::size_t begin = 0;
  while (partial_.size() - begin >= kLengthBytes) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < kLengthBytes; ++i) {
      length = length << 8U | static_cast<unsigned char>(partial_[begin + i]);
    }
    if (length > frame_bytes_max_) {
      return make_error(ErrorCode::kRequestEntityTooLarge, "watch event longer than {} bytes", frame_bytes_max_);
    }
    if (partial_.size() - begin - kLengthBytes < length) break;
    SPILLWAY_TRY(frame, decode(std::string_view(partial_).substr(begin + kLengthBytes, length)));
    frames.push_back(std::move(frame));
    begin += kLengthBytes + length;
  }
  partial_.erase(0, begin);
  return frames;
}

Result<WatchDecoder::Frame> WatchDecoder::decode(std::string_view frame) const {
  auto event = api::read_protobuf_event(frame);
  if (!event) return unreadable(event.error().message);
  auto document = std::make_shared<api::WatchDocument>();
  document->type = std::move(event->type);
  document->object = std::make_shared<const api::Json>(std::move(event->object));
  return Frame{nullptr, std::move(document), frame.size()};
}

Result<std::vector<WatchDecoder::Frame>> WatchDecoder::finish() {
  std::vector<Frame> frames;
  if (protobuf_) {
    if (!partial_.empty()) return unreadable("an event is cut off");
    return frames;
  }
  if (FrameSplitter::Frame rest = lines_.finish()) {
    const std::size_t bytes = rest->size();
    frames.push_back({std::move(rest), nullptr, bytes});
  }
  return frames;
}

}  // namespace spillway::wire
