#include "apps/view/byte_reader.h"

#include "apps/view/cluster_view.h"
#include "client/api_client.h"

#include <utility>
#include <variant>

namespace spillway::apps {
namespace {

constexpr Duration kAnswerMax = minutes(2);

wire::HttpsTransport::Options options_of(wire::HttpEndpoint endpoint, std::size_t bytes_max) {
  wire::HttpsTransport::Options options;
  options.endpoint = std::move(endpoint);
  options.limits.body_bytes_max = bytes_max;
  options.answer_max = kAnswerMax;
  options.protobuf = false;
  return options;
}

}  // namespace

ByteReader::ByteReader(runtime::Loop& loop, wire::HttpEndpoint endpoint, std::size_t bytes_max)
    : loop_(loop),
      transport_(std::make_unique<wire::HttpsTransport>(loop, options_of(std::move(endpoint), bytes_max))) {}

ByteReader::~ByteReader() {
  transport_->disconnect(*this);
}

Result<std::string> ByteReader::get(const std::string& path) {
  answer_.reset();
  const client::CallId id = ++last_id_;
  transport_->execute(client::SendCall{.id = id,
                                       .request = {.method = api::Method::kGet,
                                                   .target = path,
                                                   .headers = {{"accept", "*/*"}, {"user-agent", "spillway-record"}},
                                                   .body = {},
                                                   .document = {}}},
                      *this);
  while (!answer_ && !interrupted()) run_until_interrupted(loop_);
  if (!answer_) return make_error(ErrorCode::kServiceUnavailable, "interrupted");
  Result<api::Response> answer = *std::exchange(answer_, std::nullopt);
  if (!answer) return answer.error();
  if (!answer->ok()) return client::error_of_answer(answer->status, answer->body);
  return std::move(answer->body);
}

void ByteReader::on_api_event(client::ApiEvent event) {
  auto* const done = std::get_if<client::CallDone>(&event);
  if (done == nullptr || done->id != last_id_) return;
  answer_ = std::move(done->response);
  loop_.stop();
}

}  // namespace spillway::apps
