#include "wire/transport/crossing_sink.h"

#include "api/exchange/paced_sink.h"
#include "api/exchange/upgrade.h"

#include <atomic>
#include <functional>
#include <string>
#include <utility>

namespace spillway::wire {

namespace {

using Answering = std::weak_ptr<runtime::Loop>;  // weak: a loop that has ended takes no input any more

/// The receiving end.
struct Far {
  Far(std::shared_ptr<api::ResponseSink> to, runtime::Loop& on) : sink(std::move(to)), loop(on) {}

  std::shared_ptr<api::ResponseSink> sink;  // receiving loop only
  runtime::Loop& loop;
  std::atomic<std::size_t> under_way = 0;  // bytes that were written and not passed on yet
  std::atomic<std::size_t> waiting = 0;    // bytes that waited for the client at the last check
  std::atomic<bool> full = false;          // the sink has refused a write
  std::atomic<bool> asked = false;         // a question for `waiting` is under way
};

using FarPtr = std::shared_ptr<Far>;

/// Input of a connection that has left HTTP, on its way to the answering loop. Thread: the receiving loop.
class CrossingInput final : public api::UpgradedInput {
 public:
  CrossingInput(std::shared_ptr<api::UpgradedInput> to, Answering on) : to_(std::move(to)), on_(std::move(on)) {}

  ~CrossingInput() override {
    if (const auto loop = on_.lock()) loop->post([to = std::move(to_)]() mutable { to.reset(); });
  }

  CrossingInput(const CrossingInput&) = delete;
  CrossingInput& operator=(const CrossingInput&) = delete;

  void on_input(std::string bytes) override {
    post([bytes = std::move(bytes)](api::UpgradedInput& to) mutable { to.on_input(std::move(bytes)); });
  }

  void on_input_end() override {
    post([](api::UpgradedInput& to) { to.on_input_end(); });
  }

 private:
  template <typename Call>
  void post(Call call) {
    const auto loop = on_.lock();
    if (loop) loop->post([to = to_, call = std::move(call)]() mutable { call(*to); });
  }

  std::shared_ptr<api::UpgradedInput> to_;
  Answering on_;
};

/// `Sink`: api::PacedSink, or api::UpgradingSink if the connection can be upgraded.
template <typename Sink>
class Crossing : public Sink {
 public:
  Crossing(FarPtr far, Answering on, bool takes_pieces)
      : far_(std::move(far)), on_(std::move(on)), takes_pieces_(takes_pieces) {}

  ~Crossing() override {
    runtime::Loop& loop = far_->loop;
    loop.post([far = std::move(far_)] { far->sink.reset(); });
  }

  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  void on_response(api::Response response) override {
    post([response = std::move(response)](api::ResponseSink& to) mutable { to.on_response(std::move(response)); });
  }

  void on_stream(api::Response head) override {
    post([head = std::move(head)](api::ResponseSink& to) mutable { to.on_stream(std::move(head)); });
  }

  void on_end() override {
    post([](api::ResponseSink& to) { to.on_end(); });
  }

  bool write(std::shared_ptr<const std::string> chunk) override {
    const std::size_t bytes = chunk->size();
    if (far_->full || far_->under_way + bytes > CrossingSink::kUnderWayMax) return false;
    far_->under_way += bytes;
    far_->loop.post([far = far_, chunk = std::move(chunk), bytes]() mutable {
      far->under_way -= bytes;
      if (!far->sink) return;
      if (!far->sink->write(std::move(chunk))) far->full = true;
      far->waiting = api::waiting_bytes(*far->sink);
    });
    return true;
  }

  /// The client takes bytes without a word, so each call asks anew; the answer counts for the next call.
  std::size_t waiting_bytes() const override {
    if (far_->waiting > 0 && !far_->asked.exchange(true)) {
      far_->loop.post([far = far_] {
        far->asked = false;
        if (far->sink) far->waiting = api::waiting_bytes(*far->sink);
      });
    }
    return far_->under_way + far_->waiting;
  }

  void when_below(std::size_t bytes, std::function<void()> act) override {
    far_->loop.post([far = far_, on = on_, bytes, act = std::move(act)]() mutable {
      if (!far->sink) return;
      const auto answer = [on, act = std::move(act)] {
        if (const auto loop = on.lock()) loop->post(act);
      };
      api::PacedSink* paced = api::paced(*far->sink);
      paced == nullptr ? answer() : paced->when_below(bytes, answer);
    });
  }

  bool takes_pieces() const override { return takes_pieces_; }

  void on_pieces(api::Response head) override {
    post_paced([head = std::move(head)](api::PacedSink& to) mutable { to.on_pieces(std::move(head)); });
  }

  void on_cut() override {
    post_paced([](api::PacedSink& to) { to.on_cut(); });
  }

 protected:
  const FarPtr& far() const { return far_; }

  const Answering& answering() const { return on_; }

  template <typename Call>
  void post(Call call) {
    far_->loop.post([far = far_, call = std::move(call)]() mutable {
      if (far->sink) call(*far->sink);
    });
  }

 private:
  template <typename Call>
  void post_paced(Call call) {
    post([call = std::move(call)](api::ResponseSink& to) mutable {
      if (api::PacedSink* paced = api::paced(to)) call(*paced);
    });
  }

  FarPtr far_;
  Answering on_;
  bool takes_pieces_;
};

class CrossingUpgrade final : public Crossing<api::UpgradingSink> {
 public:
  using Crossing::Crossing;

  void on_upgrade(api::Response head, std::shared_ptr<api::UpgradedInput> input) override {
    post([head = std::move(head),
          input = std::make_shared<CrossingInput>(std::move(input), answering())](api::ResponseSink& to) mutable {
      static_cast<api::UpgradingSink&>(to).on_upgrade(std::move(head), std::move(input));
    });
  }

  void on_input_used(std::size_t bytes) override {
    post([bytes](api::ResponseSink& to) { static_cast<api::UpgradingSink&>(to).on_input_used(bytes); });
  }
};

}  // namespace

std::shared_ptr<api::ResponseSink> CrossingSink::make(std::shared_ptr<api::ResponseSink> inner,
                                                      runtime::Loop& receiving,
                                                      const std::shared_ptr<runtime::Loop>& answering) {
  const api::PacedSink* paced = api::paced(*inner);
  const bool takes_pieces = paced != nullptr && paced->takes_pieces();
  const bool can_upgrade = api::upgrading(inner) != nullptr;
  auto far = std::make_shared<Far>(std::move(inner), receiving);
  if (can_upgrade) return std::make_shared<CrossingUpgrade>(std::move(far), answering, takes_pieces);
  return std::make_shared<Crossing<api::PacedSink>>(std::move(far), answering, takes_pieces);
}

}  // namespace spillway::wire
