#include "store/server_roster.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace spillway::store {
namespace {

/// "NUMBER@JOINED KEYS": the number makes each write a different one; the first entry of a server does not contain the
/// revision at which it joined, which is the entry's own.
std::string_view keys_in(const Entry& entry) {
  const std::string_view text = *entry.value;
  const std::size_t space = text.find(' ');
  return space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
}

Revision joined_in(const Entry& entry) {
  const std::string_view text = *entry.value;
  const std::string_view head = text.substr(0, text.find(' '));
  const std::size_t at = head.find('@');
  std::uint64_t number = 0;
  if (at == std::string_view::npos) return entry.mod_revision;
  const auto [end, error] = std::from_chars(head.data() + at + 1, head.data() + head.size(), number);
  return error == std::errc() && end == head.data() + head.size() ? Revision(number) : entry.mod_revision;
}

}  // namespace

ServerRoster::ServerRoster(Store& store, std::string name, std::string keys, Ports ports)
    : store_(store), key_(fmt::format("{}{}", kPrefix, name)), keys_(std::move(keys)), ports_(std::move(ports)) {}

void ServerRoster::join(std::move_only_function<void(Outcome)> done) {
  done_ = std::move(done);
  write();
}

/// The own entry first: at least one of two servers that start at once sees the other.
void ServerRoster::write() {
  const std::string joined = joined_ == Revision() ? std::string() : fmt::format("@{}", joined_.number());
  auto value = std::make_shared<const std::string>(fmt::format("{}{} {}", ++beats_, joined, keys_));
  Write entry{.key = key_, .value = std::move(value), .expected = written_};
  writing_ = true;
  store_.write(std::move(entry), alive_.guard([this](const Result<WriteResult>& result) {
    writing_ = false;
    if (released_) {
      if (result && result->committed) written_ = result->revision;
      return remove_entry(std::exchange(released_, nullptr));
    }
    if (over_) return;
    if (!result && done_) return fail(result.error());
    if (result && !result->committed) return on_conflict(result->current);
    if (result) written_ = result->revision;
    if (joined_ == Revision()) joined_ = written_;
    if (done_) return check_others();
    ports_.after(kBeatEvery, alive_.guard([this] {
      if (!over_) write();
    }));
  }));
}

/// Handles an entry that this server did not write: by an earlier process of the same name, deleted by hand, or renewed
/// by another server that runs. The other server yields if it started later; it will find the entry overwritten.
void ServerRoster::on_conflict(const std::optional<Entry>& there) {
  if (there && joined_ != Revision() && joined_in(*there) < joined_) {
    over_ = true;
    if (ports_.yield) ports_.yield();
    return;
  }
  written_ = there ? there->mod_revision : Revision();
  write();
}

void ServerRoster::check_others() {
  store_.range({.prefix = std::string(kPrefix), .start_after = {}, .limit = 0, .at = {}},
               alive_.guard([this](const Result<RangeResult>& found) {
                 if (over_) return;
                 if (!found) return fail(found.error());
                 on_entries(found->entries);
               }));
}

void ServerRoster::on_entries(const std::vector<Entry>& entries) {
  const Instant now = ports_.now();
  bool waits = false;
  for (const Entry& entry : entries) {
    if (entry.key == key_ || keys_in(entry) == keys_) continue;
    const auto [other, is_new] = others_.try_emplace(entry.key, Other{entry.mod_revision, now});
    if (other->second.revision != entry.mod_revision) {
      return fail({ErrorCode::kConflict, std::string(keys_in(entry)), entry.key.substr(kPrefix.size())});
    }
    if (now - other->second.since < kGoneAfter) {
      waits = true;
    } else {
      store_.write({.key = entry.key, .value = nullptr, .expected = entry.mod_revision},
                   [](const Result<WriteResult>&) {});
    }
  }
  if (waits) {
    return ports_.after(kCheckEvery, alive_.guard([this] {
      if (!over_) check_others();
    }));
  }
  auto done = std::exchange(done_, nullptr);
  write();
  done({});
}

void ServerRoster::fail(Error error) {
  over_ = true;
  const auto done = std::make_shared<std::move_only_function<void(Outcome)>>(std::exchange(done_, nullptr));
  if (written_ == Revision()) return (*done)(std::move(error));
  store_.write({.key = key_, .value = nullptr, .expected = written_},
               [done, error = std::move(error)](const Result<WriteResult>&) { (*done)(error); });
}

void ServerRoster::release(std::function<void()> done) {
  if (std::exchange(over_, true)) return done();
  if (!writing_) return remove_entry(std::move(done));
  released_ = std::move(done);
}

void ServerRoster::remove_entry(std::function<void()> done) {
  if (written_ == Revision()) return done();
  store_.write({.key = key_, .value = nullptr, .expected = written_},
               [done = std::move(done)](const Result<WriteResult>&) { done(); });
}

}  // namespace spillway::store
