#include "agent/volumes/data_reader.h"

#include "base/check.h"

namespace spillway::agent {
namespace {

bool is_immutable(const api::Json& document) {
  const api::Json* found = document.find("immutable");
  return found != nullptr && found->if_bool().value_or(false);
}

}  // namespace

void DataReader::hold(const Key& key) {
  Record& record = records_[key];
  ++record.holders;
  record.reading.done = false;
  ask(key, record);  // also while another answer is on its way: that one may be older than this pod
}

void DataReader::release(const Key& key) {
  const auto found = records_.find(key);
  if (found == records_.end() || --found->second.holders > 0) return;
  if (found->second.timer) context_.api.cancel(*found->second.timer);
  records_.erase(found);
}

void DataReader::read_again(const Key& key) {
  const auto found = records_.find(key);
  if (found == records_.end()) return;
  found->second.reading.done = false;
  if (!found->second.asking) ask(key, found->second);
}

const DataReader::Reading& DataReader::reading(const Key& key) const {
  const auto found = records_.find(key);
  SPILLWAY_CHECK(found != records_.end());
  return found->second.reading;
}

void DataReader::ask(const Key& key, Record& record) {
  if (record.timer) context_.api.cancel(*std::exchange(record.timer, std::nullopt));
  record.asking = true;
  record.generation = ++last_generation_;
  context_.api.get(client::object_path("v1", plural_of(key.second.kind), key.first, key.second.name),
                   [this, key, generation = record.generation](const Result<api::Json>& answer, Now now) {
                     on_answer(key, generation, answer, now);
                   });
}

void DataReader::on_answer(const Key& key, std::uint64_t generation, const Result<api::Json>& answer, Now now) {
  const auto found = records_.find(key);
  if (found == records_.end() || found->second.generation != generation) return;
  Record& record = found->second;
  record.asking = false;
  Reading read{.done = true, .document = {}, .error = {}};
  if (answer) {
    read.document = *answer;
  } else if (answer.error().code != ErrorCode::kNotFound) {
    read.error = answer.error();
    read.document = record.reading.document;
  }
  record.reading = std::move(read);
  if (!record.reading.document || !is_immutable(*record.reading.document)) {
    const Duration period = context_.options.sync_frequency;
    const auto spread = static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(period.count() / 2) + 1));
    record.timer = context_.api.at(now.mono + period + Duration(spread), [this, key](Now) {
      const auto due = records_.find(key);
      if (due == records_.end()) return;
      due->second.timer.reset();
      ask(key, due->second);
    });
  }
  if (listener_) listener_(key, now);
}

}  // namespace spillway::agent
