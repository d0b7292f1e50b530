#include "apps/store/store_copy.h"

#include "apps/server/data_dir.h"
#include "apps/store/etcd_end.h"
#include "apps/store/kept_name.h"
#include "base/rng.h"
#include "store/incomplete_copy.h"
#include "store/sqlite/upkeep/transfer.h"

#include <memory>
#include <utility>
#include <vector>

namespace spillway::apps {
namespace {

namespace sqlite = store::sqlite;

constexpr std::size_t kPageKeys = 200;
constexpr std::string_view kWhole = "/registry/";
constexpr std::uint64_t kSecondSeed = 0x9e3779b97f4a7c15ULL;

/// Count and hash of keys and values, in their order.
class Tally {
 public:
  void add(const store::Entry& entry) {
    const std::string head = fmt::format("{} {} ", entry.key.size(), entry.value->size());
    for (const std::string_view part :
         {std::string_view(head), std::string_view(entry.key), std::string_view(*entry.value)}) {
      first_ = fnv1a64(part, first_);
      second_ = fnv1a64(part, second_);
    }
    ++objects_;
    bytes_ += entry.key.size() + entry.value->size();
  }

  std::uint64_t objects() const { return objects_; }

  std::uint64_t bytes() const { return bytes_; }

  std::string hash() const { return fmt::format("{:016x}{:016x}", first_, second_); }

 private:
  std::uint64_t objects_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t first_ = fnv1a64("");
  std::uint64_t second_ = fnv1a64("", kSecondSeed);
};

using ReadPage = std::function<Result<store::RangeResult>(const std::string& start_after)>;
using Take = std::function<Outcome(std::vector<store::Entry> entries, double share)>;

bool is_own_affair(const store::Entry& entry) {
  return entry.key.starts_with(store::kOwnAffairs);
}

/// Reads everything except a store's own keys, page by page. Returns the revision of the first page.
Result<store::Revision> walk(const ReadPage& read, const Take& take) {
  std::string last;
  std::size_t seen = 0;
  store::Revision revision;
  for (bool first = true;; first = false) {
    SPILLWAY_TRY(page, read(last));
    if (first) revision = page.revision;
    if (page.entries.empty()) return revision;
    last = page.entries.back().key;
    seen += page.entries.size();
    const double share = static_cast<double>(seen) / static_cast<double>(seen + page.remaining);
    std::erase_if(page.entries, is_own_affair);
    SPILLWAY_TRY_VOID(take(std::move(page.entries), share));
    if (page.remaining == 0) return revision;
  }
}

class Copy {
 public:
  Copy(const cli::StoreCommand& command, const std::function<bool(double)>& progress)
      : command_(command), progress_(progress), store_(store_file(resolve_data_dir(command.data_dir))) {}

  Result<CopyReport> run() {
    SPILLWAY_TRY(etcd, EtcdEnd::open(command_.etcd, [this] { return progress_(share_); }));
    etcd_ = std::move(etcd);
    return command_.into_etcd ? into_etcd() : into_file();
  }

 private:
  Error interrupted() const { return make_error(ErrorCode::kServiceUnavailable, "interrupted"); }

  Outcome report_progress(double share) {
    share_ = share;
    return progress_(share) ? Outcome() : Outcome(interrupted());
  }

  /// All pages are read at the revision of the first one.
  ReadPage pages_of_etcd() {
    return [this, at = std::optional<store::Revision>()](const std::string& start_after) mutable {
      auto page =
          etcd_->range({.prefix = std::string(kWhole), .start_after = start_after, .limit = kPageKeys, .at = at});
      if (page) at = page->revision;
      return page;
    };
  }

  Take into(Tally& tally) {
    return [this, &tally](const std::vector<store::Entry>& entries, double share) {
      for (const store::Entry& entry : entries) tally.add(entry);
      return report_progress(share);
    };
  }

  Outcome compare(const Tally& copied, const ReadPage& read) {
    Tally found;
    SPILLWAY_TRY_VOID(walk(read, into(found)));
    if (found.objects() == copied.objects() && found.hash() == copied.hash()) return {};
    return make_error(ErrorCode::kConflict,
                      "the copy differs from the source: {} objects with hash {}, expected {} with {}", found.objects(),
                      found.hash(), copied.objects(), copied.hash());
  }

  CopyReport report_of(const Tally& tally, store::Revision from, store::Revision continues_at, std::string kept) const {
    return {tally.objects(), tally.bytes(), tally.hash(), from, continues_at, std::move(kept)};
  }

  Result<CopyReport> into_file() {
    SPILLWAY_TRY_VOID(make_data_dir(resolve_data_dir(command_.data_dir)));
    const std::string kept = command_.force && is_there(store_) ? kept_name(store_) : std::string();
    SPILLWAY_TRY(maker, sqlite::StoreMaker::make(store_, kept));
    SPILLWAY_TRY_VOID(etcd_->keep_servers_out());
    Tally tally;
    SPILLWAY_TRY(revision,
                 walk(pages_of_etcd(), [&](const std::vector<store::Entry>& entries, double share) -> Outcome {
                   for (const store::Entry& entry : entries) tally.add(entry);
                   SPILLWAY_TRY_VOID(maker->add(entries));
                   return report_progress(share);
                 }));
    SPILLWAY_TRY_VOID(
        compare(tally, [&](const std::string& start_after) { return maker->read(start_after, kPageKeys); }));
    SPILLWAY_TRY(continues_at, maker->finish(revision));
    return report_of(tally, revision, continues_at, kept);
  }

  Result<CopyReport> into_etcd() {
    SPILLWAY_TRY(reader, sqlite::StoreReader::open(store_));
    SPILLWAY_TRY_VOID(etcd_->keep_servers_out());
    const ReadPage read = [&](const std::string& start_after) { return reader->read(start_after, kPageKeys); };
    SPILLWAY_TRY(head, read({}));
    SPILLWAY_TRY_VOID(may_write(head.revision));
    store::Write mark{std::string(store::kIncompleteCopyKey),
                      std::make_shared<const std::string>(fmt::format("a copy of {} that has not ended", store_)),
                      std::nullopt};
    SPILLWAY_TRY_VOID(write_one(mark));
    SPILLWAY_TRY_VOID(clear());
    Tally tally;
    SPILLWAY_TRY(revision, walk(read, [&](std::vector<store::Entry> entries, double share) -> Outcome {
                   for (const store::Entry& entry : entries) tally.add(entry);
                   return put(std::move(entries), share);
                 }));
    SPILLWAY_TRY_VOID(compare(tally, pages_of_etcd()));
    SPILLWAY_TRY_VOID(write_one({mark.key, nullptr, std::nullopt}));
    SPILLWAY_TRY(now, etcd_->range({.prefix = std::string(store::kOwnAffairs), .limit = 1, .at = {}}));
    return report_of(tally, revision, now.revision, {});
  }

  Outcome write_one(store::Write write) {
    std::vector<store::Write> one;
    one.push_back(std::move(write));
    return etcd_->write(std::move(one));
  }

  Outcome put(std::vector<store::Entry> entries, double share) {
    std::vector<store::Write> writes;
    writes.reserve(entries.size());
    for (store::Entry& entry : entries) {
      writes.push_back({std::move(entry.key), std::move(entry.value), store::Revision()});
    }
    SPILLWAY_TRY_VOID(etcd_->write(std::move(writes)));
    return report_progress(share);
  }

  /// An error if clients would see revisions fall or objects vanish.
  Outcome may_write(store::Revision source) {
    SPILLWAY_TRY(there, etcd_->range({.prefix = std::string(kWhole), .limit = 2 * kPageKeys, .at = {}}));
    if (there.revision <= source) {
      return make_error(ErrorCode::kConflict,
                        "etcd is at revision {}, and the store at {}: clients would see revisions fall. Raise etcd's "
                        "first: `etcdutl snapshot restore --bump-revision {} --mark-compacted` on a snapshot of it",
                        there.revision.number(), source.number(), source.number() + sqlite::kRevisionLead);
    }
    std::erase_if(there.entries, [](const store::Entry& entry) {
      return is_own_affair(entry) && entry.key != store::kIncompleteCopyKey;
    });
    if (there.entries.empty() || command_.force) return {};
    return make_error(ErrorCode::kAlreadyExists, "{} holds {} keys{}; --overwrite removes them", command_.etcd.prefix,
                      there.entries.size() + there.remaining,
                      there.entries.front().key == store::kIncompleteCopyKey ? " of a copy that did not end" : "");
  }

  /// Removes the present keys.
  Outcome clear() {
    for (std::string last;;) {
      SPILLWAY_TRY(page,
                   etcd_->range({.prefix = std::string(kWhole), .start_after = last, .limit = kPageKeys, .at = {}}));
      if (page.entries.empty()) return {};
      last = page.entries.back().key;
      std::erase_if(page.entries, is_own_affair);
      std::vector<store::Write> writes;
      for (store::Entry& entry : page.entries) writes.push_back({std::move(entry.key), nullptr, entry.mod_revision});
      SPILLWAY_TRY_VOID(etcd_->write(std::move(writes)));
      SPILLWAY_TRY_VOID(report_progress(0));
    }
  }

  const cli::StoreCommand& command_;
  const std::function<bool(double)>& progress_;
  std::string store_;
  std::unique_ptr<EtcdEnd> etcd_;
  double share_ = 0;
};

}  // namespace

Result<CopyReport> copy_store(const cli::StoreCommand& command, const std::function<bool(double share)>& progress) {
  return Copy(command, progress).run();
}

}  // namespace spillway::apps
