// Parsing through Boost.JSON's event parser, building our own values: the library checks the grammar, we keep the
// integers exact and notice repeated members.
#include "api/json/document_bounds.h"
#include "api/json/json.h"

#include <boost/json/basic_parser_impl.hpp>

#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

namespace spillway::api {
namespace {

class Builder {
 public:
  constexpr static std::size_t max_object_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_array_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_key_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_string_size = static_cast<std::size_t>(-1);

  using error_code = boost::json::error_code;
  using string_view = boost::json::string_view;

  bool on_document_begin(error_code&) { return true; }

  bool on_document_end(error_code&) { return true; }

  bool on_object_begin(error_code&) {
    open_.push_back({.is_object = true, .members = members_.size(), .elements = elements_.size()});
    return true;
  }

  bool on_object_end(std::size_t, error_code& error) {
    const std::size_t first = open_.back().members;
    open_.pop_back();
    JsonObject object;
    for (const std::string& key : object.assign_unsorted(take_from(members_, first))) {
      if (duplicates.size() < kComplaintsMax) duplicates.push_back(complaint_path(path_here() + key));
    }
    return add(Json(std::move(object)), error);
  }

  bool on_array_begin(error_code&) {
    open_.push_back({.is_object = false, .members = members_.size(), .elements = elements_.size()});
    return true;
  }

  bool on_array_end(std::size_t, error_code& error) {
    const std::size_t first = open_.back().elements;
    open_.pop_back();
    return add(Json(take_from(elements_, first)), error);
  }

  bool on_key_part(string_view part, std::size_t, error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }

  bool on_key(string_view part, std::size_t, error_code&) {
    members_.push_back({take_text(part), Json()});
    return true;
  }

  bool on_string_part(string_view part, std::size_t, error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }

  bool on_string(string_view part, std::size_t, error_code& error) { return add(Json(take_text(part)), error); }

  bool on_number_part(string_view part, error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }

  bool on_int64(std::int64_t value, string_view, error_code& error) {
    text_.clear();
    return add(Json(value), error);
  }

  bool on_uint64(std::uint64_t value, string_view, error_code& error) {
    text_.clear();
    return add(Json(value), error);
  }

  /// Parses the text again, because the parser's own conversion may miss the nearest double.
  bool on_double(double value, string_view part, error_code& error) {
    text_.append(part.data(), part.size());
    std::from_chars(text_.data(), text_.data() + text_.size(), value);
    text_.clear();
    if (!std::isfinite(value)) {
      error = boost::json::error::exponent_overflow;
      return false;
    }
    return add(Json(value), error);
  }

  bool on_bool(bool value, error_code& error) { return add(Json(value), error); }

  bool on_null(error_code& error) { return add(Json(), error); }

  bool on_comment_part(string_view, error_code&) { return true; }

  bool on_comment(string_view, error_code&) { return true; }

  Json root;
  std::vector<std::string> duplicates;
  std::size_t values_left = static_cast<std::size_t>(-1);

 private:
  /// A container that is being read: where its members or elements begin among the pending ones.
  struct Open {
    bool is_object;
    std::size_t members;
    std::size_t elements;
  };

  /// The tail of a stack, as a vector without spare room.
  template <typename T>
  static std::vector<T> take_from(std::vector<T>& stack, std::size_t first) {
    const auto from = stack.begin() + static_cast<std::ptrdiff_t>(first);
    std::vector<T> taken(std::make_move_iterator(from), std::make_move_iterator(stack.end()));
    stack.erase(from, stack.end());
    return taken;
  }

  std::string take_text(string_view part) {
    if (text_.empty()) return {part.data(), part.size()};
    text_.append(part.data(), part.size());
    return std::exchange(text_, {});
  }

  /// Not inlined: g++ 12 would warn of members of the variant that are not alive.
  [[gnu::noinline]] bool add(Json value, error_code& error) {
    if (values_left == 0) {
      error = boost::json::error::array_too_large;
      return false;
    }
    --values_left;
    if (open_.empty()) {
      root = std::move(value);
    } else if (open_.back().is_object) {
      members_.back().value = std::move(value);
    } else {
      elements_.push_back(std::move(value));
    }
    return true;
  }

  /// "spec.containers[1].": the path of the next value, with a point behind it; empty at the root.
  std::string path_here() const {
    std::string path;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const bool innermost = i + 1 == open_.size();
      if (open_[i].is_object) {
        if (!path.empty()) path += '.';
        path += members_[(innermost ? members_.size() : open_[i + 1].members) - 1].key;
      } else {
        path += fmt::format("[{}]", (innermost ? elements_.size() : open_[i + 1].elements) - open_[i].elements);
      }
    }
    if (!path.empty()) path += '.';
    return path;
  }

  std::vector<Open> open_;
  JsonObject::Members members_;  // the members of all open objects; the last one of each waits for its value
  Json::Array elements_;         // the elements of all open arrays
  std::string text_;
};

constexpr std::size_t kNestingMax = 1000;

Result<Json> parse(std::string_view text, std::vector<std::string>* duplicates, std::size_t values_max) {
  boost::json::parse_options options;
  options.max_depth = kNestingMax;
  boost::json::basic_parser<Builder> parser(options);
  parser.handler().values_left = values_max;
  boost::json::error_code error;
  const std::size_t consumed = parser.write_some(false, text.data(), text.size(), error);
  if (error == boost::json::error::array_too_large) return too_many_values();
  if (!error && consumed < text.size() && text.find_first_not_of(" \t\r\n", consumed) != std::string_view::npos) {
    error = boost::json::error::extra_data;
  }
  if (error) return make_error(ErrorCode::kBadRequest, "invalid JSON at byte {}: {}", consumed, error.message());
  if (duplicates != nullptr) *duplicates = std::move(parser.handler().duplicates);
  return std::move(parser.handler().root);
}

}  // namespace

Error too_many_values(std::size_t values_max) {
  return make_error(ErrorCode::kRequestEntityTooLarge,
                    "Request entity too large: a document may have at most {} values", values_max);
}

std::string complaint_path(std::string path) {
  if (path.size() <= kComplaintBytesMax) return path;
  path.resize(kComplaintBytesMax);
  while (!path.empty() && (static_cast<unsigned char>(path.back()) & 0xc0u) == 0x80u) path.pop_back();
  if (!path.empty()) path.pop_back();  // a character may have been cut in two
  return path + "...";
}

Result<Json> parse_json(std::string_view text, std::vector<std::string>* duplicates) {
  return parse(text, duplicates, static_cast<std::size_t>(-1));
}

Result<Json> parse_bounded_json(std::string_view text, std::vector<std::string>* duplicates, std::size_t values_max) {
  return parse(text, duplicates, values_max);
}

}  // namespace spillway::api
