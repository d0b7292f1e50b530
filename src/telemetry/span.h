// A span: one piece of work with its beginning and its end, as OpenTelemetry has them, and the W3C's text that names a
// span in the header of a request. Thread: any (plain values).
// Source: W3C, "Trace Context", 3.2; OpenTelemetry, "Tracing API".
#pragma once

#include "base/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::telemetry {

/// 16 bytes, most significant first; both 0: none.
struct TraceId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend bool operator==(const TraceId&, const TraceId&) = default;
};

/// 8 bytes; 0: none.
using SpanId = std::uint64_t;

/// The identity of the span that requested an operation, its parent.
struct SpanContext {
  TraceId trace;
  SpanId span = 0;
  bool sampled = false;

  friend bool operator==(const SpanContext&, const SpanContext&) = default;
};

/// "00-TRACE-SPAN-01": the header traceparent. nullopt: malformed, or without a trace. A later version is parsed as far
/// as its form equals this one.
std::optional<SpanContext> parse_traceparent(std::string_view text);

/// 32 and 16 lower case hexadecimal digits.
std::string to_hex(const TraceId& id);
std::string to_hex(SpanId id);

enum class SpanKind : std::uint8_t { kInternal = 1, kServer = 2, kClient = 3 };

struct Attribute {
  std::string name;
  std::variant<std::int64_t, bool, std::string> value;
};

struct Span {
  TraceId trace;
  SpanId id = 0;
  SpanId parent = 0;  // 0: the root span of the trace
  SpanKind kind = SpanKind::kInternal;
  std::string name;
  WallTime begin;
  WallTime end;
  std::vector<Attribute> attributes;
  bool failed = false;
};

}  // namespace spillway::telemetry
