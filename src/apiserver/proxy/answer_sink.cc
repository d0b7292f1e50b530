#include "apiserver/proxy/answer_sink.h"

#include "base/ascii.h"

#include <utility>

namespace spillway::apiserver {
namespace {

constexpr int kStatusMin = 200;
constexpr int kStatusMax = 599;
constexpr int kRedirectMin = 300;
constexpr int kRedirectMax = 399;
constexpr int kBadGateway = 502;

/// A status that HTTP defines: statuses of answers are labels of metrics.
int known_status(int status) {
  return status >= kStatusMin && status <= kStatusMax ? status : kBadGateway;
}

}  // namespace

/// A stream may last: only the time until it begins counts.
void AnswerSink::begins(int status) {
  if (exchange_->finished()) return;
  core_.catch_up();
  exchange_->steps.end(from_.step, core_.now.mono, status >= 500);
}

/// Answers the client in place of a redirect that may not be passed on.
bool AnswerSink::refuses(const api::Response& answer) {
  const bool redirects =
      answer.status >= kRedirectMin && answer.status <= kRedirectMax && !answer.header("location").empty();
  if (from_.redirects == Redirects::kPassed || !redirects) return false;
  exchange_->answer(kBadGateway, "the backend attempted to redirect this request, which is not permitted",
                    "text/plain; charset=utf-8", {{"X-Content-Type-Options", "nosniff"}});
  return true;
}

void AnswerSink::on_response(api::Response response) {
  begins(response.status);
  if (refuses(response)) return;
  std::string body = std::exchange(response.body, {});
  if (from_.rewrites_links && has_links(response)) {
    HtmlLinks links(from_.path, from_.hosts);
    body = links.rewritten(body) + links.rest();
  }
  api::Response head = shown(response);
  const std::string type = take_type(head);
  exchange_->answer(head.status, std::move(body), type, std::move(head.headers));
}

void AnswerSink::on_stream(api::Response head) {
  begins(head.status);
  if (refuses(head)) return;
  if (from_.rewrites_links && has_links(head)) links_.emplace(from_.path, from_.hosts);
  api::Response sent = shown(head);
  const std::string type = take_type(sent);
  exchange_->open_stream(type, from_.cancel, sent.status, std::move(sent.headers));
  from_.on_stream();
}

void AnswerSink::on_upgrade(api::Response head, std::shared_ptr<api::UpgradedInput> input) {
  begins(head.status);
  if (exchange_->finished()) return input->on_input_end();
  upgraded_ = api::upgrading(exchange_->release());
  if (upgraded_ == nullptr) return input->on_input_end();
  api::Response sent = shown(head);
  sent.status = head.status;
  sent.headers.emplace_back("Connection", "Upgrade");
  sent.headers.emplace_back("Upgrade", head.header("upgrade"));
  upgraded_->on_upgrade(std::move(sent), std::move(input));
}

bool AnswerSink::write(std::shared_ptr<const std::string> chunk) {
  if (upgraded_ != nullptr) return upgraded_->write(std::move(chunk));
  if (!links_) return exchange_->write(std::move(chunk));
  // An empty piece, too: the exchange says whether the client is still there.
  return exchange_->write(std::make_shared<const std::string>(links_->rewritten(*chunk)));
}

void AnswerSink::on_end() {
  const auto upgraded = upgraded_;  // ending the exchange may destroy this object
  if (std::string rest = links_ ? links_->rest() : std::string(); !rest.empty()) {
    static_cast<void>(exchange_->write(std::make_shared<const std::string>(std::move(rest))));
  }
  upgraded != nullptr ? upgraded->on_end() : exchange_->end();
}

void AnswerSink::on_cut() {
  const auto upgraded = upgraded_;
  upgraded != nullptr ? upgraded->on_end() : exchange_->cut();
}

void AnswerSink::on_input_used(std::size_t bytes) {
  if (upgraded_ != nullptr) upgraded_->on_input_used(bytes);
}

std::size_t AnswerSink::waiting_bytes() const {
  return upgraded_ != nullptr ? upgraded_->waiting_bytes() : exchange_->waiting_bytes();
}

api::Response AnswerSink::shown(const api::Response& answer) const {
  api::HeaderList headers = returned_headers(answer, from_.path, from_.hosts);
  if (from_.type_alone)
    std::erase_if(headers, [](const auto& header) { return !equal_ignoring_case(header.first, "content-type"); });
  return {known_status(answer.status), std::move(headers), {}, {}};
}

std::string AnswerSink::take_type(api::Response& head) const {
  std::string type(head.header("content-type"));
  std::erase_if(head.headers, [](const auto& header) { return equal_ignoring_case(header.first, "content-type"); });
  return type.empty() ? std::string(from_.type) : type;
}

}  // namespace spillway::apiserver
