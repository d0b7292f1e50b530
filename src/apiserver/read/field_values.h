// The values of an object's selectable fields in one block: each behind its length. A pod has eight of them, most of a
// few bytes, and a list of strings took three times as much. Thread: any (a plain value).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace spillway::apiserver {

class FieldValues {
 public:
  /// Adds a value behind the others. At most 4 GiB.
  void push_back(std::string_view value) {
    const auto length = static_cast<std::uint32_t>(value.size());
    char bytes[sizeof(length)];  // NOLINT(cppcoreguidelines-avoid-c-arrays)
    std::memcpy(bytes, &length, sizeof(length));
    text_.append(bytes, sizeof(length));
    text_ += value;
    ++size_;
  }

  /// Gives back the room that push_back() may have left.
  void shrink() { text_.shrink_to_fit(); }

  std::size_t size() const { return size_; }

  bool empty() const { return size_ == 0; }

  /// Must not be empty().
  std::string_view front() const { return value_at(0); }

  /// `index` must be below size(). Cost: the values before it are passed by.
  std::string_view operator[](std::size_t index) const {
    std::size_t at = 0;
    while (index-- > 0) at += kLengthBytes + value_at(at).size();
    return value_at(at);
  }

  bool contains(std::string_view value) const {
    for (std::size_t at = 0; at < text_.size(); at += kLengthBytes + value_at(at).size()) {
      if (value_at(at) == value) return true;
    }
    return false;
  }

  /// The values with their lengths, for an account of memory.
  const std::string& packed() const { return text_; }

  friend bool operator==(const FieldValues&, const FieldValues&) = default;

 private:
  static constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);

  std::string_view value_at(std::size_t at) const {
    std::uint32_t length = 0;
    std::memcpy(&length, text_.data() + at, kLengthBytes);
    return std::string_view(text_).substr(at + kLengthBytes, length);
  }

  std::string text_;
  std::size_t size_ = 0;
};

}  // namespace spillway::apiserver
