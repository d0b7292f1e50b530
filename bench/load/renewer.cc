#include "load/renewer.h"

#include "api/json/flat_json.h"
#include "api/schema/protobuf_writer.h"
#include "api/schema/schema.h"
#include "api/text/time_text.h"
#include "base/check.h"

#include "load/wire_fields.h"
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::load {
namespace {

constexpr std::size_t kPage = 2'000;                      // leases in one page of a list
constexpr std::size_t kBacklogMax = 1'000'000;            // arrivals that wait for a connection
constexpr std::size_t kMagicBytes = 4;                    // "k8s\0"
constexpr std::string_view kUnknownField{"\x78\x00", 2};  // a field of the envelope that every server skips
constexpr Duration kFillMax = seconds(300);
constexpr Duration kLearnMax = seconds(60);

std::string numbered(std::size_t lease) {
  return fmt::format("node-{:06}", lease);
}

}  // namespace

std::string_view string_member(std::string_view text, std::string_view name, std::size_t from) {
  const std::string wanted = fmt::format("\"{}\":\"", name);
  const std::size_t at = text.find(wanted, from);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + wanted.size();
  const std::size_t end = text.find('"', begin);
  return end == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin);
}

Renewer::Renewer(const Options& options, Dialer& dialer)
    : options_(options), dialer_(dialer), leases_(options.leases), renewals_(options.rate, kBacklogMax) {
  wall_behind_ = wall_behind();
}

Outcome Renewer::open() {
  slots_.resize(options_.connections);
  return dialer_.open(options_.connections, *this, [this] { return opened_; }, connections_);
}

std::string Renewer::collection() const {
  return fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases", options_.ns);
}

std::string Renewer::name(std::size_t lease) const {
  return numbered(lease);
}

std::string Renewer::body(std::size_t lease, WallTime renewed) const {
  static const api::Type& kLease = *api::find_kind("coordination.k8s.io/v1", "Lease");
  std::string text = json_body(lease, renewed);
  if (!options_.protobuf) return text;
  const auto document = api::FlatJson::parse(text);
  SPILLWAY_CHECK(document);
  std::string bytes = api::write_protobuf(kLease, *document);
  if (options_.general) bytes += kUnknownField;
  return bytes;
}

std::string Renewer::json_body(std::size_t lease, WallTime renewed) const {
  const Lease& known = leases_[lease];
  const std::string own = name(lease);
  std::string metadata = fmt::format(R"("name":"{}","namespace":"{}")", own, options_.ns);
  if (!known.uid.empty()) {
    metadata += fmt::format(
        R"(,"uid":"{}","resourceVersion":"{}","creationTimestamp":"{}","managedFields":[{{"manager":"kubelet","operation":"Update","apiVersion":"coordination.k8s.io/v1","time":"{}","fieldsType":"FieldsV1","fieldsV1":{{"f:spec":{{"f:holderIdentity":{{}},"f:leaseDurationSeconds":{{}},"f:renewTime":{{}}}}}}}}])",
        known.uid, known.version, known.created, known.managed);
  }
  return fmt::format(
      R"({{"kind":"Lease","apiVersion":"{}","metadata":{{{}}},"spec":{{"holderIdentity":"{}","leaseDurationSeconds":40,"renewTime":"{}"}}}})",
      options_.general && !options_.protobuf ? "coordination.k8s.io\\/v1" : "coordination.k8s.io/v1", metadata, own,
      api::format_micro_time(renewed));
}

Outcome Renewer::fill() {
  work_ = Work::kFill;
  for (Connection* connection : renewals_.take_all_idle()) on_idle(*connection);
  const bool done = dialer_.turn_until([this] { return filled_ == leases_.size() || !problem_.empty(); }, kFillMax);
  work_ = Work::kNone;
  if (!problem_.empty()) return make_error(ErrorCode::kServiceUnavailable, "{}", problem_);
  if (!done) return make_error(ErrorCode::kTimeout, "{} of {} leases created", filled_, leases_.size());
  return {};
}

Outcome Renewer::learn() {
  work_ = Work::kLearn;
  send_page(renewals_.take_idle());
  const bool done = dialer_.turn_until([this] { return last_page_ || !problem_.empty(); }, kLearnMax);
  work_ = Work::kNone;
  if (!problem_.empty()) return make_error(ErrorCode::kServiceUnavailable, "{}", problem_);
  if (!done || learned_ < leases_.size()) {
    return make_error(ErrorCode::kNotFound, "{} of {} leases are there; fill first", learned_, leases_.size());
  }
  return {};
}

void Renewer::send_page(Connection& connection) {
  std::string target = fmt::format("{}?limit={}", collection(), kPage);
  if (!continue_.empty()) target += "&continue=" + continue_;
  slots_[connection.index].answer.clear();
  connection.send(dialer_.head("GET", target, 0));
}

void Renewer::learn_page(const std::string& text) {
  // The list's own metadata are at its beginning or its end.
  constexpr std::size_t kEdge = 512;
  const std::string_view all = text;
  continue_ = string_member(all.substr(0, kEdge), "continue");
  if (continue_.empty()) continue_ = string_member(all.substr(all.size() - std::min(all.size(), kEdge)), "continue");
  last_page_ = continue_.empty();
  for (std::size_t at = text.find("\"name\":\"node-"); at != std::string::npos;
       at = text.find("\"name\":\"node-", at + 1)) {
    const std::size_t lease = std::strtoull(text.c_str() + at + 13, nullptr, 10);
    if (lease >= leases_.size()) continue;
    // Members are sorted, so the time stands before the name.
    const std::size_t begin = text.rfind("\"creationTimestamp\"", at);
    Lease& known = leases_[lease];
    known.created = string_member(text, "creationTimestamp", begin);
    known.managed = string_member(text, "time", begin);
    const std::size_t version = text.rfind("\"resourceVersion\":\"", at);
    known.version = string_member(text, "resourceVersion", version);
    known.uid = string_member(text, "uid", at);
    ++learned_;
  }
}

void Renewer::begin(Instant start, Instant measured, Instant end) {
  work_ = Work::kRenew;
  renewals_.begin(start, measured, end);
}

std::optional<Instant> Renewer::advance() {
  const std::optional<Instant> next = renewals_.advance();
  send_due();
  return next;
}

/// The next lease, in an order that is unrelated to their keys.
std::size_t Renewer::next_lease() {
  std::size_t lease = 0;
  std::size_t checked = 0;
  do {
    lease = next_lease_++ * 7'919 % leases_.size();
  } while (leases_[lease].busy && ++checked < leases_.size());
  return lease;
}

void Renewer::send_due() {
  while (const std::optional<OpenLoop::Turn> turn = renewals_.next()) {
    const std::size_t lease = next_lease();
    Slot& slot = slots_[turn->connection->index];
    slot = {.lease = lease, .due = turn->due, .answer = std::move(slot.answer), .renews = true};
    slot.answer.clear();
    leases_[lease].busy = true;
    const std::string text = body(lease, wall_of(slot.due, wall_behind_));
    turn->connection->send(dialer_.head("PUT", collection() + "/" + name(lease) + "?timeout=10s", text.size()) + text);
  }
}

void Renewer::record(Lease& lease, std::string_view answer) const {
  if (!options_.protobuf) {
    lease.version = string_member(answer, "resourceVersion");
    lease.managed = string_member(answer, "time");
    return;
  }
  // Behind the magic bytes the object, its metadata, and of them the version and the time of the first manager.
  const auto metadata = field_at(answer.substr(std::min(answer.size(), kMagicBytes)), {2, 1});
  if (!metadata) return;
  lease.version = field_at(*metadata, {6}).value_or(std::string_view());
  const auto managed = static_cast<std::int64_t>(number_at(*metadata, {17, 4}, 1).value_or(0));
  lease.managed = api::format_time(WallTime(seconds(managed)));
}

void Renewer::finish(Slot& slot, int status) {
  slot.renews = false;
  Lease& lease = leases_[slot.lease];
  lease.busy = false;
  const bool fine = status >= 200 && status < 300;
  if (fine) {
    record(lease, slot.answer);
  }
  renewals_.finish(slot.due, fine, status);
}

void Renewer::on_piece(Connection& connection, std::string_view piece) {
  std::string& answer = slots_[connection.index].answer;
  if (work_ != Work::kLearn && answer.size() > (std::size_t{64} << 10U)) return;
  answer += piece;
}

void Renewer::on_answer(Connection& connection) {
  Slot& slot = slots_[connection.index];
  if (slot.renews) return finish(slot, connection.status());
  if (work_ == Work::kFill) {
    ++filled_;
    if (connection.status() != 201 && connection.status() != 409) problem_ = "a lease was refused: " + slot.answer;
  }
  if (work_ == Work::kLearn) {
    if (connection.status() != 200) {
      problem_ = "the leases cannot be listed: " + slot.answer;
      return;
    }
    learn_page(slot.answer);
  }
}

void Renewer::on_idle(Connection& connection) {
  if (opened_ < connections_.size() && work_ == Work::kNone) ++opened_;
  if (work_ == Work::kFill && next_lease_ < leases_.size()) {
    const std::string text = body(next_lease_++, wall_of(now(), wall_behind_));
    slots_[connection.index].answer.clear();
    return connection.send(dialer_.head("POST", collection(), text.size()) + text);
  }
  if (work_ == Work::kLearn && !last_page_ && problem_.empty()) return send_page(connection);
  renewals_.add_idle(connection);
  if (work_ == Work::kRenew) send_due();
}

void Renewer::on_lost(Connection& connection, std::string_view why) {
  if (slots_[connection.index].renews) finish(slots_[connection.index], 0);
  renewals_.lose(connection);
  if (work_ != Work::kRenew) problem_ = fmt::format("a connection was lost: {}", why);
}

}  // namespace spillway::load
