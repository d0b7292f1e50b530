#include "telemetry/otlp.h"

#include "base/json_string.h"

#include <fmt/format.h>

#include <chrono>
#include <type_traits>

namespace spillway::telemetry {
namespace {

void append_value(std::string& out, const Attribute& attribute) {
  out += "{\"key\":";
  append_json_string(attribute.name, out);
  out += ",\"value\":{";
  std::visit(
      [&](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::int64_t>) {
          out += fmt::format("\"intValue\":\"{}\"", value);  // 64 bits are text in this encoding
        } else if constexpr (std::is_same_v<Value, bool>) {
          out += fmt::format("\"boolValue\":{}", value);
        } else {
          out += "\"stringValue\":";
          append_json_string(value, out);
        }
      },
      attribute.value);
  out += "}}";
}

void append_attributes(std::string& out, std::span<const Attribute> attributes) {
  out += "\"attributes\":[";
  for (const Attribute& attribute : attributes) {
    if (&attribute != attributes.data()) out += ',';
    append_value(out, attribute);
  }
  out += ']';
}

std::int64_t nanoseconds_of(WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

void append_span(std::string& out, const Span& span) {
  out += fmt::format(R"({{"traceId":"{}","spanId":"{}",)", to_hex(span.trace), to_hex(span.id));
  if (span.parent != 0) out += fmt::format(R"("parentSpanId":"{}",)", to_hex(span.parent));
  out += "\"name\":";
  append_json_string(span.name, out);
  out += fmt::format(R"(,"kind":{},"startTimeUnixNano":"{}","endTimeUnixNano":"{}",)", static_cast<int>(span.kind),
                     nanoseconds_of(span.begin), nanoseconds_of(span.end));
  append_attributes(out, span.attributes);
  if (span.failed) out += R"(,"status":{"code":2})";
  out += '}';
}

}  // namespace

std::string otlp_body(const TracedService& service, std::span<const Span> spans) {
  const Attribute resource[] = {{"service.name", service.name}, {"service.version", service.version}};
  std::string out = R"({"resourceSpans":[{"resource":{)";
  append_attributes(out, resource);
  out += R"(},"scopeSpans":[{"scope":{"name":"spillway"},"spans":[)";
  for (const Span& span : spans) {
    if (&span != spans.data()) out += ',';
    append_span(out, span);
  }
  return out + "]}]}]}";
}

}  // namespace spillway::telemetry
