#include "agent/pods/image_gc.h"

#include "api/text/duration.h"
#include "api/text/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::int64_t kEverything = std::numeric_limits<std::int64_t>::max();

/// With errors, in one line.
Error failure(std::string text, const std::vector<std::string>& errors) {
  return {ErrorCode::kInternalError, std::move(text) + api::join_errors(errors), {}};
}

}  // namespace

Outcome check_policy(const ImageGcPolicy& policy) {
  for (const auto& [name, percent] : {std::pair("HighThresholdPercent", policy.high_threshold_percent),
                                      std::pair("LowThresholdPercent", policy.low_threshold_percent)}) {
    if (percent < 0 || percent > 100) return invalid({}, "invalid {} {}, must be in range [0-100]", name, percent);
  }
  if (policy.low_threshold_percent > policy.high_threshold_percent) {
    return invalid({}, "LowThresholdPercent {} can not be higher than HighThresholdPercent {}",
                   policy.low_threshold_percent, policy.high_threshold_percent);
  }
  return {};
}

void ImageGc::detect(const std::vector<ImageOnNode>& images, Instant now) {
  std::map<std::string, ImageRecord> present;
  for (const ImageOnNode& image : images) {
    const auto known = records_.find(image.id);
    ImageRecord record = known == records_.end() ? ImageRecord{.first_detected = now} : known->second;
    if (image.in_use) record.last_used = now;
    record.size_bytes = image.size_bytes;
    record.pinned = image.pinned;
    present.insert_or_assign(image.id, std::move(record));
  }
  records_ = std::move(present);
}

std::vector<ImageGc::Candidate> ImageGc::candidates(const std::vector<ImageOnNode>& images) const {
  std::set<std::string> in_use;
  for (const ImageOnNode& image : images) {
    if (image.in_use) in_use.insert(image.id);
  }
  std::vector<Candidate> found;
  for (const auto& [id, record] : records_) {
    if (!record.pinned && !in_use.contains(id)) found.push_back({id, record});
  }
  std::ranges::sort(found, [](const Candidate& a, const Candidate& b) {
    return std::tie(a.record.last_used, a.record.first_detected, a.id) <
           std::tie(b.record.last_used, b.record.first_detected, b.id);
  });
  return found;
}

Result<std::vector<ImageGc::Candidate>> ImageGc::remove_old(std::vector<Candidate> candidates, Instant now,
                                                            const Remove& remove, ImageGcResult& result) {
  if (policy_.max_age == Duration{} || now - started_ <= policy_.max_age) return candidates;
  std::vector<Candidate> left;
  std::vector<std::string> errors;
  for (Candidate& each : candidates) {
    const bool old = !each.record.last_used || now - *each.record.last_used > policy_.max_age;
    if (old) {
      const Outcome removed = remove(each.id);
      if (removed) {
        result.freed_bytes += each.record.size_bytes;
        records_.erase(each.id);
        continue;
      }
      errors.push_back(removed.error().text());
    }
    left.push_back(std::move(each));
  }
  if (errors.empty()) return left;
  return failure(fmt::format("wanted to free images older than {}, encountered errors in image deletion: ",
                             api::format_duration(policy_.max_age)),
                 errors);
}

ImageGcResult ImageGc::free_space(std::int64_t wanted_bytes, const std::vector<Candidate>& candidates, Instant now,
                                  const Remove& remove) {
  ImageGcResult result;
  std::vector<std::string> errors;
  for (const Candidate& each : candidates) {
    if (each.record.last_used && *each.record.last_used >= now) continue;
    if (now - each.record.first_detected < policy_.min_age) continue;
    if (const Outcome removed = remove(each.id); !removed) {
      errors.push_back(removed.error().text());
      continue;
    }
    records_.erase(each.id);
    result.freed_bytes += each.record.size_bytes;
    if (result.freed_bytes >= wanted_bytes) break;
  }
  if (!errors.empty()) {
    result.error = failure(
        fmt::format("wanted to free {} bytes, but freed {} bytes space with errors in image deletion: ", wanted_bytes,
                    result.freed_bytes),
        errors);
  }
  return result;
}

ImageGcResult ImageGc::collect(const Result<ImageFileSystem>& fs, const std::vector<ImageOnNode>& images, Instant now,
                               const Remove& remove) {
  ImageGcResult result;
  const auto left = remove_old(candidates(images), now, remove, result);
  if (!left) {
    result.error = left.error();
    return result;
  }
  const auto fail = [&result](std::string reason, std::string message) {
    result.events.push_back({std::move(reason), message});
    result.error = Error{ErrorCode::kInternalError, std::move(message), {}};
    return result;
  };
  if (!fs) {
    result.error = fs.error();
    return result;
  }
  if (fs->capacity_bytes == 0) return fail("InvalidDiskCapacity", "invalid capacity 0 on image filesystem");
  const std::int64_t available = std::min(fs->available_bytes, fs->capacity_bytes);
  const std::int64_t used_percent = 100 - available * 100 / fs->capacity_bytes;
  if (used_percent < policy_.high_threshold_percent) return result;
  const std::int64_t wanted = fs->capacity_bytes * (100 - policy_.low_threshold_percent) / 100 - available;
  const ImageGcResult freed = free_space(wanted, *left, now, remove);
  result.freed_bytes += freed.freed_bytes;
  result.error = freed.error;
  if (freed.error || freed.freed_bytes >= wanted) return result;
  return fail("FreeDiskSpaceFailed",
              fmt::format("Failed to garbage collect required amount of images. Attempted to free {} bytes, but only "
                          "found {} bytes eligible to free.",
                          wanted, freed.freed_bytes));
}

ImageGcResult ImageGc::remove_unused(const std::vector<ImageOnNode>& images, Instant now, const Remove& remove) {
  return free_space(kEverything, candidates(images), now, remove);
}

}  // namespace spillway::agent
