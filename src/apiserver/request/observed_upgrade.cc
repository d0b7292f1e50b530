#include "apiserver/request/observed_upgrade.h"

#include "api/exchange/upgrade.h"

#include <cstddef>
#include <string>
#include <utility>

namespace spillway::apiserver {
namespace {

constexpr int kSwitchingProtocols = 101;

class ObservedUpgrade final : public api::UpgradingSink {
 public:
  ObservedUpgrade(std::shared_ptr<api::UpgradingSink> sink, std::unique_ptr<AnswerObserver> observer)
      : sink_(std::move(sink)), observer_(std::move(observer)) {}

  /// The writer has released the connection: without a call of its own, because the client has gone.
  ~ObservedUpgrade() override { end(); }

  ObservedUpgrade(const ObservedUpgrade&) = delete;
  ObservedUpgrade& operator=(const ObservedUpgrade&) = delete;

  void on_response(api::Response response) override {
    if (const auto observer = std::exchange(observer_, nullptr)) {
      observer->on_answer({response.status, nullptr, response.body, response.header("content-type"), false});
    }
    sink_->on_response(std::move(response));
  }

  void on_stream(api::Response head) override {
    begin(head.status);
    sink_->on_stream(std::move(head));
  }

  void on_upgrade(api::Response head, std::shared_ptr<api::UpgradedInput> input) override {
    begin(kSwitchingProtocols);
    sink_->on_upgrade(std::move(head), std::move(input));
  }

  bool write(std::shared_ptr<const std::string> chunk) override { return sink_->write(std::move(chunk)); }

  void on_end() override {
    end();
    sink_->on_end();
  }

  void on_input_used(std::size_t bytes) override { sink_->on_input_used(bytes); }

  std::size_t waiting_bytes() const override { return sink_->waiting_bytes(); }

 private:
  void begin(int code) {
    began_ = true;
    if (observer_) observer_->on_stream(code);
  }

  void end() {
    const auto observer = std::exchange(observer_, nullptr);
    if (observer && began_) observer->on_end();
  }

  std::shared_ptr<api::UpgradingSink> sink_;
  std::unique_ptr<AnswerObserver> observer_;
  bool began_ = false;
};

}  // namespace

std::shared_ptr<api::ResponseSink> observed(std::shared_ptr<api::ResponseSink> sink,
                                            std::unique_ptr<AnswerObserver> observer) {
  std::shared_ptr<api::UpgradingSink> upgrading = api::upgrading(sink);
  if (upgrading == nullptr) return sink;
  return std::make_shared<ObservedUpgrade>(std::move(upgrading), std::move(observer));
}

}  // namespace spillway::apiserver
