// Any text as JSON and any document as a Pod: refused with a message, or a value that survives both ways of writing.
#include "api/codec/codec.h"
#include "api/object/node_affinity.h"
#include "api/object/pod_requests.h"
#include "base/check.h"

#include <cstddef>
#include <cstdint>

using namespace spillway::api;  // NOLINT(google-build-using-namespace): a program of one function

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = parse_json(text);
  if (!document) return 0;
  const auto printed = parse_json(to_text(*document));
  SPILLWAY_CHECK(printed && to_text(*printed) == to_text(*document));  // 1.5e3 comes back as the integer 1500
  const auto pod = decode<Pod>(*document);
  if (!pod) {
    SPILLWAY_CHECK(!pod.error().message.empty());
    return 0;
  }
  Json written = *document;
  encode_over(*pod, written);
  const auto again = decode<Pod>(written);
  SPILLWAY_CHECK(again && *again == *pod);
  const auto alone = decode<Pod>(encode(*pod));
  SPILLWAY_CHECK(alone && *alone == *pod);
  static_cast<void>(compute_qos(pod->spec));
  static_cast<void>(effective_requests(*pod, RequestOptions()));
  static_cast<void>(required_node_affinity(pod->spec).matches(pod->metadata));
  return 0;
}
