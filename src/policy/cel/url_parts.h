// A URL in its parts, read as Go's url.ParseRequestURI does: an absolute URL, or an absolute path. A fragment is none:
// '#' belongs to the path or the query. Thread: any (pure). Source: Kubernetes docs, "Common Expression Language in
// Kubernetes", URL library; RFC 3986.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cel {

struct UrlParts {
  std::string text;    // the URL as given
  std::string scheme;  // lower case
  std::string host;    // host and port, with escapes resolved
  std::string path;    // escaped
  std::string query;   // the query as given, without '?'

  /// The host without the port and the brackets of an IPv6 address.
  std::string_view hostname() const;
  /// Empty: none.
  std::string_view port() const;

  /// Names in the order of their first use, each with its values. A malformed pair is left out.
  using Query = std::vector<std::pair<std::string, std::vector<std::string>>>;
  Query query_values() const;
};

/// kInvalid: the text is not a URL, and why.
Result<UrlParts> parse_url(std::string_view text);

}  // namespace spillway::cel
