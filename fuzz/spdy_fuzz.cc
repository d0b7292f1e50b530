// Input of a client over SPDY: however it is cut, the decoder yields the same data, and never more than was sent.
#include "api/stream/port_streams.h"
#include "api/stream/spdy_channels.h"
#include "base/check.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace spillway::api;

std::string channels_of(std::string_view bytes, std::size_t cut) {
  SpdyChannels channels("v4.channel.k8s.io", {.in = true, .out = true});
  std::string text;
  std::string reply;
  std::size_t ends = 0;
  for (std::size_t at = 0; at < bytes.size(); at += cut) {
    const auto inputs = channels.feed(bytes.substr(at, cut), reply);
    if (!inputs) break;
    for (const ChannelInput& input : *inputs) {
      text += input.data;
      ends += input.kind == ChannelInput::Kind::kEnd ? 1 : 0;
    }
  }
  SPILLWAY_CHECK(text.size() <= bytes.size());
  return text + std::string(ends, '|');
}

std::string ports_of(std::string_view bytes, std::size_t cut, PortStreams::Carrier carrier) {
  PortStreams streams(carrier);
  std::string text;
  std::string reply;
  for (std::size_t at = 0; at < bytes.size(); at += cut) {
    const auto events = streams.feed(bytes.substr(at, cut), {}, reply);
    if (!events) break;
    for (const PortEvent& event : *events) text += event.data;
    SPILLWAY_CHECK(streams.pairs() <= PortStreams::kPairsMax);
  }
  SPILLWAY_CHECK(text.size() <= bytes.size());
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // One piece that breaks off says nothing of what came before the break.
  const std::string whole = channels_of(bytes, bytes.size() + 1);
  SPILLWAY_CHECK(whole.empty() || whole == channels_of(bytes, 1));
  for (const auto carrier : {PortStreams::Carrier::kPlain, PortStreams::Carrier::kWebSocket}) {
    const std::string forwarded = ports_of(bytes, bytes.size() + 1, carrier);
    SPILLWAY_CHECK(forwarded.empty() || forwarded == ports_of(bytes, 1, carrier));
  }
  return 0;
}
