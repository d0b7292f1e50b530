#include "policy/flow/flow_table.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace spillway::flow {
namespace {

constexpr std::string_view kEvery = "*";
constexpr std::string_view kAccountUser = "system:serviceaccount:";

bool is_of_heartbeats(const Schema& schema) {
  return schema.name == kHeartbeats && schema.level == kNodeHigh && schema.by == FlowBy::kUser;
}

}  // namespace

FlowTable::FlowTable(Configuration configuration) : configuration_(std::move(configuration)) {
  const std::vector<Schema>& schemas = configuration_.schemas;
  SPILLWAY_CHECK(!schemas.empty() && schemas.size() <= everybody_.size());
  for (std::size_t place = 0; place < schemas.size(); ++place) {
    for (const Rule& rule : schemas[place].rules) {
      for (const Subject& subject : rule.subjects) add(subject, place);
    }
  }
  const auto own = std::ranges::find_if(schemas, is_of_heartbeats);
  heartbeats_ = own == schemas.end() ? schemas.size() - 1 : static_cast<std::size_t>(own - schemas.begin());
}

void FlowTable::add(const Subject& subject, std::size_t place) {
  if (subject.kind == Subject::Kind::kServiceAccount) {
    accounts_[subject.ns + ":" + (subject.name == kEvery ? "" : subject.name)].set(place);
  } else if (subject.name == kEvery) {
    everybody_.set(place);
  } else {
    (subject.kind == Subject::Kind::kUser ? users_ : groups_)[subject.name].set(place);
  }
}

FlowTable::Places FlowTable::candidates(const Asked& asked) const {
  Places found = everybody_;
  const auto add_those = [&found](const Index& index, std::string_view key) {
    if (const auto those = index.find(key); those != index.end()) found |= those->second;
  };
  add_those(users_, asked.user);
  for (const std::string& group : asked.groups) add_those(groups_, group);
  if (asked.user.starts_with(kAccountUser)) {
    const std::string_view account = asked.user.substr(kAccountUser.size());
    add_those(accounts_, account);
    add_those(accounts_, account.substr(0, account.find(':') + 1));
  }
  return found;
}

std::size_t FlowTable::classify(const Asked& asked) const {
  const std::size_t last = configuration_.schemas.size() - 1;
  if (heartbeats_ != last && is_heartbeat(asked)) return heartbeats_;
  const Places found = candidates(asked);
  for (std::size_t place = found._Find_first(); place < last; place = found._Find_next(place)) {
    if (matches(configuration_.schemas[place], asked)) return place;
  }
  return last;
}

}  // namespace spillway::flow
