// Answers of a server as the bytes they are, one after the other. Thread: main, as ClusterView.
#pragma once

#include "base/error.h"
#include "client/engine.h"
#include "runtime/loop.h"
#include "wire/client/http_endpoint.h"
#include "wire/transport/https_transport.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace spillway::apps {

class ByteReader final : private client::Transport::Receiver {
 public:
  /// `bytes_max`: maximum of one answer.
  ByteReader(runtime::Loop& loop, wire::HttpEndpoint endpoint, std::size_t bytes_max);
  ~ByteReader() override;
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  /// The body of a 2xx answer to a GET. Errors are those of the Status of another answer; kServiceUnavailable: no whole
  /// answer arrived, or Ctrl-C.
  Result<std::string> get(const std::string& path);

 private:
  void on_api_event(client::ApiEvent event) override;

  runtime::Loop& loop_;
  std::unique_ptr<wire::HttpsTransport> transport_;
  client::CallId last_id_ = 0;
  std::optional<Result<api::Response>> answer_;
};

}  // namespace spillway::apps
