#include "api/stream/stream_options.h"

#include <utility>

namespace spillway::api {
namespace {

bool is_set(const Target& target, std::string_view name) {
  const std::string* value = target.find(name);
  return value != nullptr && *value == "1";
}

/// Reads a boolean of a query as Go does: no value is true.
bool is_true(const Target& target, std::string_view name) {
  const std::string* value = target.find(name);
  return value != nullptr && (value->empty() || (*value != "0" && *value != "false" && *value != "False" &&
                                                 *value != "FALSE" && *value != "f" && *value != "F"));
}

}  // namespace

Result<StreamOptions> parse_stream_options(const Target& target) {
  StreamOptions options{is_set(target, "input"), is_set(target, "output"), is_set(target, "error"),
                        is_set(target, "tty")};
  if (options.tty) options.err = false;
  if (!options.in && !options.out && !options.err)
    return make_error(ErrorCode::kBadRequest, "you must specify at least 1 of stdin, stdout, stderr");
  return options;
}

StreamOptions requested_streams(const Target& target) {
  return {is_true(target, "stdin"), is_true(target, "stdout"), is_true(target, "stderr"), is_true(target, "tty")};
}

std::string to_query(const StreamOptions& options) {
  std::string query;
  for (const auto& [set, name] : {std::pair(options.in, "input"), std::pair(options.out, "output"),
                                  std::pair(options.err, "error"), std::pair(options.tty, "tty")})
    if (set) query += fmt::format("{}{}=1", query.empty() ? "" : "&", name);
  return query;
}

}  // namespace spillway::api
