#include "agent/garbage/image_gc.h"

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

/// The text with the errors, in one line.
Error failure(std::string text, const std::vector<std::string>& errors) {
  return {ErrorCode::kInternalError, std::move(text) + api::join_errors(errors), {}};
}

}  // namespace

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

std::vector<ImageGcPass::Candidate> ImageGc::candidates(const std::vector<ImageOnNode>& images) const {
  using Candidate = ImageGcPass::Candidate;
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

ImageGcPass ImageGc::collect(Result<ImageFileSystem> fs, const std::vector<ImageOnNode>& images, Instant now) {
  return {*this, ImageGcPass::Aim::kThresholds, std::move(fs), candidates(images), now};
}

ImageGcPass ImageGc::remove_unused(const std::vector<ImageOnNode>& images, Instant now) {
  return {*this, ImageGcPass::Aim::kEverything, ImageFileSystem{}, candidates(images), now};
}

ImageGcPass::ImageGcPass(ImageGc& images, Aim aim, Result<ImageFileSystem> fs, std::vector<Candidate> candidates,
                         Instant now)
    : images_(images), aim_(aim), fs_(std::move(fs)), candidates_(std::move(candidates)), now_(now) {
  const Duration max_age = images_.policy_.max_age;
  if (aim_ == Aim::kThresholds && max_age != Duration{} && now_ - images_.started_ > max_age) {
    step_ = Step::kOld;
  } else {
    begin_space();
  }
}

bool ImageGcPass::is_old(const Candidate& candidate) const {
  return !candidate.record.last_used || now_ - *candidate.record.last_used > images_.policy_.max_age;
}

bool ImageGcPass::is_due(const Candidate& candidate) const {
  if (candidate.record.last_used && *candidate.record.last_used >= now_) return false;
  return now_ - candidate.record.first_detected >= images_.policy_.min_age;
}

void ImageGcPass::fail(std::string reason, std::string message) {
  step_ = Step::kOver;
  result_.events.push_back({std::move(reason), message});
  result_.error = Error{ErrorCode::kInternalError, std::move(message), {}};
}

/// Computes how many bytes have to be freed; zero ends the pass.
void ImageGcPass::begin_space() {
  step_ = Step::kOver;
  at_ = 0;
  wanted_bytes_ = kEverything;
  if (aim_ == Aim::kThresholds) {
    if (!fs_) {
      result_.error = fs_.error();
      return;
    }
    if (fs_->capacity_bytes == 0) return fail("InvalidDiskCapacity", "invalid capacity 0 on image filesystem");
    const std::int64_t available = std::min(fs_->available_bytes, fs_->capacity_bytes);
    wanted_bytes_ = 0;
    if (100 - available * 100 / fs_->capacity_bytes < images_.policy_.high_threshold_percent) return;
    wanted_bytes_ = fs_->capacity_bytes * (100 - images_.policy_.low_threshold_percent) / 100 - available;
  }
  step_ = Step::kSpace;
}

/// After the last removal: reports images that could not be removed, and the bytes that are still missing.
void ImageGcPass::finish() {
  const Step ended = std::exchange(step_, Step::kOver);
  if (ended == Step::kOld) {
    if (errors_.empty()) return begin_space();
    result_.error = failure(fmt::format("wanted to free images older than {}, encountered errors in image deletion: ",
                                        api::format_duration(images_.policy_.max_age)),
                            errors_);
    return;
  }
  if (!errors_.empty()) {
    result_.error = failure(
        fmt::format("wanted to free {} bytes, but freed {} bytes space with errors in image deletion: ", wanted_bytes_,
                    freed_bytes_),
        errors_);
    return;
  }
  if (aim_ == Aim::kEverything || freed_bytes_ >= wanted_bytes_) return;
  fail("FreeDiskSpaceFailed",
       fmt::format("Failed to garbage collect required amount of images. Attempted to free {} bytes, but only "
                   "found {} bytes eligible to free.",
                   wanted_bytes_, freed_bytes_));
}

const std::string& ImageGcPass::next() {
  static const std::string kNone;
  while (step_ != Step::kOver) {
    for (; at_ < candidates_.size(); ++at_) {
      if (step_ == Step::kOld ? is_old(candidates_[at_]) : is_due(candidates_[at_])) return candidates_[at_].id;
    }
    finish();
  }
  return kNone;
}

void ImageGcPass::on_removed(const Outcome& removed) {
  const std::string id = next();
  if (id.empty()) return;
  if (!removed) {
    errors_.push_back(removed.error().text());
    ++at_;
    return;
  }
  const std::int64_t size = candidates_[at_].record.size_bytes;
  result_.freed_bytes += size;
  if (!rehearses_) images_.records_.erase(id);
  candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(at_));
  if (step_ != Step::kSpace) return;
  freed_bytes_ += size;
  if (freed_bytes_ >= wanted_bytes_) finish();
}

std::vector<std::string> ImageGcPass::plan() const {
  std::vector<std::string> ids;
  ImageGcPass rehearsal = *this;
  rehearsal.rehearses_ = true;
  while (!rehearsal.next().empty()) {
    ids.push_back(rehearsal.next());
    rehearsal.on_removed({});
  }
  return ids;
}

}  // namespace spillway::agent
