// The new text of a file, on the disk beside the old one, before it takes its place. Thread: any that may wait for the
// disk.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <utility>

namespace spillway {

/// The draft is removed at its end unless it took the place of the old text.
class FileDraft {
 public:
  /// Writes the text exclusively, under a random name and with mode 0600, down to the disk. Errors name the path of the
  /// file that is to be replaced.
  static Result<FileDraft> write(const std::string& path, std::string_view text);

  FileDraft(FileDraft&& other) noexcept : path_(std::move(other.path_)), draft_(std::exchange(other.draft_, {})) {}

  FileDraft& operator=(FileDraft&&) = delete;
  FileDraft(const FileDraft&) = delete;
  FileDraft& operator=(const FileDraft&) = delete;
  ~FileDraft();

  /// Replaces the old text: one rename. A loss of power may undo it until sync_folder_of() the path has returned.
  Outcome place();

 private:
  FileDraft(std::string path, std::string draft) : path_(std::move(path)), draft_(std::move(draft)) {}

  std::string path_;
  std::string draft_;  // path of the draft; empty: there is none
};

}  // namespace spillway
