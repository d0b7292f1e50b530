#include "api/json/flat_json.h"

#include "base/ascii.h"

namespace spillway::api {
namespace {

constexpr std::string_view kRecordedFields = "fieldsV1";

}  // namespace

class FlatJson::Parser {
 public:
  Parser(FlatJson& out, std::string_view text) : out_(out), text_(text) {}

  bool run() {
    if (!take_value({}, 0, false)) return false;
    skip_blanks();
    return at_ == text_.size();
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  /// A quotation mark or backslash, as the keys of lists in recorded fields have them: k:{\"uid\":\"…\"}.
  bool skip_escape() {
    if (at_ + 1 >= text_.size() || (text_[at_ + 1] != '"' && text_[at_ + 1] != '\\')) return false;
    ++at_;
    return true;
  }

  bool string(std::string_view& into, bool may_escape = false) {
    if (!take('"')) return false;
    const std::size_t begin = at_;
    for (; at_ < text_.size(); ++at_) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') break;
      if (c < 0x20 || c >= 0x7f || (c == '\\' && !(may_escape && skip_escape()))) return false;
    }
    if (at_ == text_.size()) return false;
    into = text_.substr(begin, at_ - begin);
    ++at_;
    return true;
  }

  bool integer(std::string_view& into) {
    const std::size_t begin = at_;
    if (text_[at_] == '-') ++at_;
    const std::size_t digits = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == digits || at_ - digits > 18 || (text_[digits] == '0' && (at_ - digits > 1 || digits != begin)))
      return false;
    into = text_.substr(begin, at_ - begin);
    return at_ == text_.size() || (text_[at_] != '.' && text_[at_] != 'e' && text_[at_] != 'E');
  }

  bool scalar(Value& value) {
    const std::size_t begin = at_;
    switch (text_[at_]) {
      case '"':
        value.kind = Kind::kString;
        return string(value.text);
      case 't':
      case 'f':
        value.kind = Kind::kBool;
        if (!take_word("true") && !take_word("false")) return false;
        break;
      case 'n':
        value.kind = Kind::kNull;
        if (!take_word("null")) return false;
        break;
      default:
        value.kind = Kind::kInteger;
        return integer(value.text);
    }
    value.text = text_.substr(begin, at_ - begin);
    return true;
  }

  /// Parses the elements of an object or array up to the closing bracket.
  bool children(At self, bool is_object, int depth, bool in_fields) {
    const char close = is_object ? '}' : ']';
    if (take(close)) return true;
    do {
      std::string_view key;
      if (is_object && (!string(key, in_fields) || !take(':'))) return false;
      if (!take_value(key, depth + 1, in_fields)) return false;
      ++out_.values_[self].members;
    } while (take(','));
    return take(close);
  }

  bool take_value(std::string_view key, int depth, bool in_fields) {
    skip_blanks();
    if (at_ == text_.size() || out_.size_ == kValuesMax || depth > kDepthMax) return false;
    const At self = out_.size_++;
    Value& value = out_.values_[self];
    value.key = key;
    const std::size_t begin = at_;
    const char c = text_[at_];
    if (c == '{' || c == '[') {
      ++at_;
      value.kind = c == '{' ? Kind::kObject : Kind::kArray;
      if (!children(self, c == '{', depth, in_fields || key == kRecordedFields)) return false;
      value.text = text_.substr(begin, at_ - begin);
    } else if (!scalar(value)) {
      return false;
    }
    value.end = static_cast<std::uint16_t>(out_.size_);
    return true;
  }

  FlatJson& out_;
  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<FlatJson> FlatJson::parse(std::string_view text) {
  std::optional<FlatJson> out(std::in_place);
  if (!Parser(*out, text).run()) out.reset();
  return out;
}

std::optional<FlatJson::At> FlatJson::find(At object, std::string_view key) const {
  if (values_[object].kind != Kind::kObject) return std::nullopt;
  for (At at = first(object); at < values_[object].end; at = values_[at].end) {
    if (values_[at].key == key) return at;
  }
  return std::nullopt;
}

bool same_value(const FlatJson& a, FlatJson::At at, const FlatJson& b, FlatJson::At other) {
  const FlatJson::Value& left = a[at];
  const FlatJson::Value& right = b[other];
  if (left.kind != right.kind || left.members != right.members) return false;
  if (left.kind != FlatJson::Kind::kObject && left.kind != FlatJson::Kind::kArray) return left.text == right.text;
  if (left.text == right.text) return true;
  if (left.members > 64) return false;
  std::uint64_t matched = 0;  // members of the right one, so that none counts twice
  FlatJson::At in_order = FlatJson::first(other);
  for (FlatJson::At child = FlatJson::first(at); child < left.end; child = a[child].end) {
    FlatJson::At match = in_order;
    if (left.kind == FlatJson::Kind::kObject) {
      const auto found = b.find(other, a[child].key);
      if (!found) return false;
      match = *found;
      const std::uint64_t bit = std::uint64_t{1} << (match % 64);
      if (right.end - other > 64 || (matched & bit) != 0) return false;
      matched |= bit;
    } else {
      in_order = b[in_order].end;
    }
    if (!same_value(a, child, b, match)) return false;
  }
  return true;
}

}  // namespace spillway::api
