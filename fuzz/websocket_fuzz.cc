// Input of a client on an upgraded connection: however it is cut, the decoder yields the same data, and never more than
// was sent.
#include "api/stream/command_channels.h"
#include "base/check.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace {

using spillway::api::ChannelInput;

/// Everything that comes of `bytes`, given `cut` at a time, as one text; where it breaks off is part of it.
std::string taken(std::string_view bytes, std::size_t cut, std::string_view protocol) {
  spillway::api::WebSocketChannels channels(protocol);
  std::string text;
  std::string reply;
  for (std::size_t at = 0; at < bytes.size(); at += cut) {
    const auto inputs = channels.feed(bytes.substr(at, cut), reply);
    if (!inputs) break;
    for (const ChannelInput& input : *inputs) {
      text += static_cast<char>('0' + static_cast<int>(input.kind));
      text += input.data;
    }
  }
  SPILLWAY_CHECK(text.size() <= 3 * bytes.size());
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string_view protocol : spillway::api::WebSocketChannels::protocols()) {
    const std::string one_by_one = taken(bytes, 1, protocol);
    const std::string whole = taken(bytes, bytes.size() + 1, protocol);
    // One piece that breaks off says nothing of what came before the break.
    SPILLWAY_CHECK(whole.empty() || whole == one_by_one);
  }
  return 0;
}
