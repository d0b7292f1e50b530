// Pages of a process below /debug/spillway, as JSON. Thread: loop.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "base/error.h"

#include <optional>
#include <string_view>

namespace spillway::apps {

class DebugPages {
 public:
  DebugPages() = default;
  DebugPages(const DebugPages&) = delete;
  DebugPages& operator=(const DebugPages&) = delete;
  virtual ~DebugPages() = default;

  /// nullopt: there is no such page.
  virtual std::optional<api::Response> answer(std::string_view path) const = 0;
};

/// A JSON document, or a Status, as an answer.
api::Response json_response(int status, const api::Json& document);
api::Response status_response(const Error& error);

}  // namespace spillway::apps
