#include "apps/store/store_check.h"

#include "apps/store/etcd_end.h"
#include "store/incomplete_copy.h"

#include <string>
#include <utility>

namespace spillway::apps {
namespace {

constexpr std::size_t kPage = 200;
constexpr std::string_view kRoot = "/registry/";

void check_entry(const store::Entry& entry, const ValueCheck& check, store::sqlite::CheckReport& report) {
  if (entry.key == store::kIncompleteCopyKey) {
    report.findings.add("{}: there is {}, expected a whole store", entry.key, *entry.value);
  }
  if (entry.key.starts_with(store::kOwnAffairs)) return;
  const store::sqlite::CheckedValue value = check(entry.key, *entry.value);
  ++report.objects[value.resource];
  if (!value.problem.empty()) report.findings.add("{}: {}", entry.key, value.problem);
  if (!value.remark.empty()) report.notes.add("{}: {}", entry.key, value.remark);
}

}  // namespace

store::sqlite::CheckedValue ValueCheck::operator()(std::string_view key, std::string_view value) const {
  apiserver::StoredValues::Verdict verdict = values_.check(key, value);
  return {std::move(verdict.resource), std::move(verdict.problem), std::move(verdict.remark)};
}

Result<store::sqlite::CheckReport> check_etcd_store(const cli::EtcdArgs& args,
                                                    const store::sqlite::ShouldContinue& should_continue) {
  SPILLWAY_TRY(etcd, EtcdEnd::open(args, [&should_continue] { return should_continue(0); }));
  const ValueCheck check;
  store::sqlite::CheckReport report;
  std::optional<store::Revision> at;
  for (std::string last;;) {
    SPILLWAY_TRY(page, etcd->range({.prefix = std::string(kRoot), .start_after = last, .limit = kPage, .at = at}));
    at = report.revision = report.compacted = page.revision;
    for (const store::Entry& entry : page.entries) check_entry(entry, check, report);
    if (page.remaining == 0) return report;
    last = page.entries.back().key;
  }
}

}  // namespace spillway::apps
