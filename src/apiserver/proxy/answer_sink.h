// Passes the answer of a server behind a proxy on to the client: its status, its allowed headers, its body as it
// arrives, and the connection once that is upgraded. Thread: loop. Bounds: those of the gateway that calls it.
// Source: Kubernetes 1.32, k8s.io/apimachinery util/proxy.
#pragma once

#include "api/exchange/upgrade.h"
#include "apiserver/proxy/forwarding.h"
#include "apiserver/proxy/html_links.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

class AnswerSink final : public api::UpgradingSink {
 public:
  enum class Redirects { kPassed, kRefused };

  struct From {
    ProxiedPath path;
    ProxiedHosts hosts;
    std::string_view type;                     // Content-Type of an answer that has none
    bool type_alone = false;                   // the Content-Type is the only header passed on
    std::shared_ptr<void> place;               // released when the answer has ended; may be null
    std::optional<std::size_t> step = {};      // the step of the request to be ended
    std::function<void()> cancel = [] {};      // called when the client has disconnected
    std::function<void()> on_stream = [] {};   // called when the answer begins to arrive in pieces
    Redirects redirects = Redirects::kPassed;  // refused: the client gets 502
    bool rewrites_links = false;               // links of HTML lead below the proxy
  };

  AnswerSink(Core& core, ExchangePtr exchange, From from)
      : core_(core), exchange_(std::move(exchange)), from_(std::move(from)) {}

  void on_response(api::Response response) override;
  void on_stream(api::Response head) override;
  void on_upgrade(api::Response head, std::shared_ptr<api::UpgradedInput> input) override;
  bool write(std::shared_ptr<const std::string> chunk) override;
  void on_end() override;
  void on_cut() override;
  void on_input_used(std::size_t bytes) override;
  std::size_t waiting_bytes() const override;

  void set_cancel(std::function<void()> cancel) { from_.cancel = std::move(cancel); }

  /// Keeps `held` until the answer has ended.
  void hold(std::shared_ptr<void> held) { held_ = std::move(held); }

 private:
  void begins(int status);
  bool refuses(const api::Response& answer);
  api::Response shown(const api::Response& answer) const;
  std::string take_type(api::Response& head) const;

  Core& core_;
  ExchangePtr exchange_;
  From from_;
  std::shared_ptr<void> held_;
  std::shared_ptr<api::UpgradingSink> upgraded_;
  std::optional<HtmlLinks> links_;  // rewrites an answer that arrives in pieces
};

}  // namespace spillway::apiserver
