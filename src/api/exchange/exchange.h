// One request to an API server and its answer, below HTTP and above TCP: what the in-process transport, the HTTPS
// client, the server and the simulated network all pass around. Thread: any (plain values; bodies of streams are shared
// and immutable).
#pragma once

#include "base/error.h"

#include <any>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::api {

class Json;

/// A document that travels beside its bytes within one process, so that the receiver need not parse them. Null: only
/// the bytes.
using DocumentPtr = std::shared_ptr<const Json>;

enum class Method { kGet, kHead, kPost, kPut, kPatch, kDelete, kOptions, kOther };

std::string_view to_string(Method method);
Method parse_method(std::string_view text);

using HeaderList = std::vector<std::pair<std::string, std::string>>;

/// `target` is the path with query as received or to be sent, percent-encoded: "/api/v1/pods?watch=1&limit=5".
struct Request {
  Method method = Method::kGet;
  std::string target;
  HeaderList headers;  // names lower-case
  std::string body;
  DocumentPtr document;     // the parsed JSON body
  std::string source = {};  // the sender's address, without a port; empty: from within this process

  /// The first header of that lower-case name; empty if absent.
  std::string_view header(std::string_view name) const;
};

struct Response {
  int status = 200;
  HeaderList headers;  // names as sent, e.g. "Content-Type"
  std::string body;
  DocumentPtr document;  // the parsed JSON body

  std::string_view header(std::string_view name) const;  // case-insensitive

  bool ok() const { return status >= 200 && status < 300; }
};

struct AccountToken;

/// The sender of a request, as authentication established it.
struct UserInfo {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  /// Further facts about the user, such as the pod to which a token is bound.
  std::map<std::string, std::vector<std::string>> extra = {};
  /// The service account token of the request. It is genuine and in time; the API server checks if the objects to which
  /// it is bound still exist.
  std::shared_ptr<const AccountToken> token = {};
  /// The user that really sent the request, where it acts as this one; null: this user itself.
  std::shared_ptr<const UserInfo> impersonator = {};
};

/// One event of a watch, beside its bytes. Thread: loop.
struct WatchDocument {
  std::string type;          // "ADDED"
  DocumentPtr object;        // not null
  mutable std::any decoded;  // the value type of the object, left by its first decoder for all other watches
};

using WatchDocumentPtr = std::shared_ptr<const WatchDocument>;

/// Receives the answer to one request: either one on_response, or on_stream followed by data and one on_end. Thread:
/// loop. The receiver bounds what it buffers: write() returns false when it is full, and the server ends the stream.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  virtual void on_response(Response response) = 0;
  /// Headers of a streaming answer (watch, log -f); to be flushed at once.
  virtual void on_stream(Response head) = 0;
  [[nodiscard]] virtual bool write(std::shared_ptr<const std::string> chunk) = 0;

  /// Writes one whole event of a watch; `event` is the parsed `line`.
  [[nodiscard]] virtual bool write_event(std::shared_ptr<const std::string> line, WatchDocumentPtr event) {
    static_cast<void>(event);
    return write(std::move(line));
  }

  virtual void on_end() = 0;
};

/// Percent-encodes one path segment or query value.
std::string percent_encode(std::string_view text);
/// kBadRequest on a truncated or non-hexadecimal escape.
Result<std::string> percent_decode(std::string_view text);

/// A target taken apart: decoded path segments and query parameters in order.
struct Target {
  std::vector<std::string> segments;
  std::vector<std::pair<std::string, std::string>> query;

  /// The first parameter of that name, nullptr if absent.
  const std::string* find(std::string_view name) const;
};

Result<Target> parse_target(std::string_view target);

}  // namespace spillway::api
