#include "yaml/yaml_document.h"

#include "base/utf8.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace spillway::yaml {
namespace {

using api::Json;

// Bundles of definitions have 24,000 values in 1.4 MiB; no known one has a tenth of these bounds.
constexpr std::size_t kTextMax = 4 * 1024 * 1024;
constexpr std::size_t kValuesMax = 250'000;
constexpr std::size_t kBytesMax = 4 * kTextMax;  // keys and scalars; aliases can make more of them than the text has
constexpr std::size_t kAliasesMax = 1'000;
constexpr std::size_t kDepthMax = 64;
constexpr std::size_t kKeyMax = 4'096;  // a field of managedFields holds a list's key as JSON
constexpr std::size_t kKeyShown = 100;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<bool> boolean_of(std::string_view text) {
  if (is_one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"})) return true;
  if (is_one_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"})) return false;
  return std::nullopt;
}

std::optional<std::int64_t> integer_of(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  } else if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

/// "0644", "0o644", "-0644"; nullopt: a digit is no octal one, or the number is out of range.
std::optional<std::int64_t> octal_of(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  text.remove_prefix(text.starts_with("0o") ? 2 : 1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc{} || end != text.data() + text.size() || text.starts_with('-')) return std::nullopt;
  return negative ? -value : value;
}

std::optional<double> number_of(std::string_view text) {
  if (text.empty() || text.find_first_not_of("+-.0123456789eE") != std::string_view::npos) return std::nullopt;
  if (text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The error for which a document is not read. Thrown through the parser, which would continue otherwise.
struct Refused {
  Error error;
};

/// Builds the document from parser events.
class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& file, LeadingZero leading_zero, RepeatedKeys repeated, std::size_t documents_max)
      : file_(file), leading_zero_(leading_zero), repeated_(repeated), documents_max_(documents_max) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_.size() == documents_max_)
      refuse(mark, "expected {}, got more",
             documents_max_ == 1 ? "one document" : fmt::format("{} documents", documents_max_));
    document_ = Document();
    anchors_.clear();
  }

  void OnDocumentEnd() override { documents_.push_back(std::move(document_)); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (is_key()) refuse_key(mark);
    begin(mark);
    end(Json(), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (is_key()) refuse_key(mark);
    if (++aliases_ > kAliasesMax) refuse(mark, "more than {} aliases", kAliasesMax);
    const auto named = anchors_.find(anchor);
    if (named == anchors_.end()) refuse(mark, "an alias is inside of the node that it names");
    const Origins::Id id = begin(mark);
    const Anchored& known = named->second;
    copy_origins(mark, known.value, known.id, id, open_.size());
    document_.origins[id] = document_.origins[known.id];
    Json value = known.value;
    end(std::move(value), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (is_key()) return take_key(mark, text);
    const Origins::Id id = begin(mark);
    count_bytes(mark, text.size());
    Json value = scalar(mark, tag, text, document_.origins[id]);
    end(std::move(value), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, Json::array(), anchor);
  }

  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, Json::object(), anchor);
  }

  void OnMapEnd() override { close(); }

  std::vector<Document> take() { return std::move(documents_); }

 private:
  /// A list or mapping whose end has not been reached.
  struct Open {
    Json value;
    Origins::Id id = Origins::kRoot;
    YAML::anchor_t anchor = 0;
    std::optional<std::string> key = {};    // the member that is being read
    YAML::Mark key_mark = {};               // position of the member's name
    std::map<std::string, int> lines = {};  // by key
  };

  struct Anchored {
    Json value;
    Origins::Id id = Origins::kRoot;
  };

  template <typename... Args>
  [[noreturn]] void refuse(const YAML::Mark& mark, fmt::format_string<Args...> format, Args&&... args) const {
    throw Refused{invalid(fmt::format("{}:{}", file_, mark.line + 1), format, std::forward<Args>(args)...)};
  }

  [[noreturn]] void refuse_key(const YAML::Mark& mark) const { refuse(mark, "a key must be a string"); }

  bool is_key() const { return !open_.empty() && open_.back().value.is_object() && !open_.back().key; }

  void take_key(const YAML::Mark& mark, const std::string& key) {
    Open& map = open_.back();
    if (key.size() > kKeyMax) refuse(mark, "a key is longer than {} bytes", kKeyMax);
    if (key == "<<") refuse(mark, "merge keys are not read");
    const auto [first, fresh] = map.lines.emplace(key, mark.line + 1);
    if (!fresh && repeated_ == RepeatedKeys::kLastCounts) {
      document_.repeated.push_back({mark.line + 1, first->second, key});
    } else if (!fresh) {
      refuse(mark, "key \"{}\" is there twice; first in line {}", shortened(key, kKeyShown), first->second);
    }
    count_bytes(mark, key.size());
    map.key = key;
    map.key_mark = mark;
  }

  void count_value(const YAML::Mark& mark) {
    if (++values_ > kValuesMax) refuse(mark, "more than {} values; do aliases multiply?", kValuesMax);
  }

  void count_bytes(const YAML::Mark& mark, std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ > kBytesMax) refuse(mark, "more than {} bytes of values; do aliases multiply?", kBytesMax);
  }

  /// The place of a value that begins: a member's is that of its key, but for its spelling.
  Origins::Id begin(const YAML::Mark& mark) {
    if (open_.size() > kDepthMax) refuse(mark, "is nested deeper than {} levels", kDepthMax);
    count_value(mark);
    Origins::Id id = Origins::kRoot;
    if (!open_.empty()) {
      const Open& around = open_.back();
      id = document_.origins.add(around.id,
                                 around.key ? *around.key : fmt::format("{}", around.value.if_array()->size()));
    }
    document_.origins[id].line = mark.line + 1;
    document_.origins[id].column = mark.column + 1;
    last_ = id;
    return id;
  }

  /// The value is whole.
  void end(Json value, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_.insert_or_assign(anchor, Anchored{value, last_});
    if (open_.empty()) {
      document_.value = std::move(value);
      return;
    }
    Open& around = open_.back();
    if (around.value.is_array()) {
      around.value.if_array()->push_back(std::move(value));
      return;
    }
    document_.origins[last_].line = around.key_mark.line + 1;
    document_.origins[last_].column = around.key_mark.column + 1;
    around.value[*around.key] = std::move(value);
    around.key.reset();
  }

  void open(const YAML::Mark& mark, Json value, YAML::anchor_t anchor) {
    if (is_key()) refuse_key(mark);
    const Origins::Id id = begin(mark);
    open_.push_back({.value = std::move(value), .id = id, .anchor = anchor});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    last_ = done.id;
    end(std::move(done.value), done.anchor);
  }

  /// A value of an alias has the places of the value that it names.
  void copy_origins(const YAML::Mark& mark, const Json& value, Origins::Id from, Origins::Id to, std::size_t depth) {
    if (depth > kDepthMax) refuse(mark, "is nested deeper than {} levels", kDepthMax);
    if (const std::string* text = value.if_string()) count_bytes(mark, text->size());
    const auto copy = [&](std::string_view name, const Json& member) {
      count_value(mark);
      count_bytes(mark, name.size());
      const Origins::Id source = document_.origins.child(from, name).value_or(Origins::kRoot);
      const Origins::Id target = document_.origins.add(to, name);
      document_.origins[target] = document_.origins[source];
      copy_origins(mark, member, source, target, depth + 1);
    };
    if (const auto* members = value.if_object()) {
      for (const auto& [name, member] : *members) copy(name, member);
    } else if (const auto* elements = value.if_array()) {
      for (std::size_t i = 0; i < elements->size(); ++i) copy(fmt::format("{}", i), (*elements)[i]);
    }
  }

  Json scalar(const YAML::Mark& mark, const std::string& tag, const std::string& text, Origin& origin) const {
    if (tag == "!") return Json(text);  // quoted
    if (tag != "?" && tag != "tag:yaml.org,2002:str") refuse(mark, "tags are not read: {}", shortened(tag, kKeyShown));
    if (tag != "?") return Json(text);
    origin.text = text;
    if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return Json();
    if (const auto boolean = boolean_of(text)) return Json(*boolean);
    const std::string_view digits = text.starts_with('-') ? std::string_view(text).substr(1) : std::string_view(text);
    if (digits.starts_with("0o") || (digits.size() > 1 && digits.starts_with('0') && all_digits(digits))) {
      if (leading_zero_ == LeadingZero::kRefused) {
        refuse(mark, "{} is octal for some readers of YAML and decimal for others; write it as a decimal number",
               shortened(text, kKeyShown));
      }
      if (const auto octal = octal_of(text)) return Json(*octal);
    }
    if (const auto integer = integer_of(text)) return Json(*integer);
    if (const auto number = number_of(text)) return Json(*number);
    return Json(text);
  }

  const std::string& file_;
  LeadingZero leading_zero_;
  RepeatedKeys repeated_;
  std::size_t documents_max_;
  Document document_;
  std::vector<Document> documents_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Origins::Id last_ = Origins::kRoot;  // the value that begins or ends
  std::size_t values_ = 0;
  std::size_t bytes_ = 0;
  std::size_t aliases_ = 0;
};

/// Reads `documents_max` documents at most.
Result<std::vector<Document>> read_all(const std::string& file, const std::string& text, LeadingZero leading_zero,
                                       RepeatedKeys repeated, std::size_t documents_max) {
  if (text.size() > kTextMax) return invalid(file, "larger than {} bytes", kTextMax);
  if (const auto at = find_non_text(text)) {
    const auto line = std::ranges::count(std::string_view(text).substr(0, *at), '\n') + 1;
    return invalid(fmt::format("{}:{}", file, line), "expected UTF-8 text, found byte {:#04x}",
                   static_cast<unsigned char>(text[*at]));
  }
  Builder builder(file, leading_zero, repeated, documents_max);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    // YAML::LoadAll() is not used: for some texts it never stops making documents.
    for (std::size_t tried = 0; tried <= documents_max && parser.HandleNextDocument(builder);) ++tried;
  } catch (const Refused& refused) {
    return refused.error;
  } catch (const YAML::Exception& error) {
    return invalid(fmt::format("{}:{}", file, error.mark.line + 1), "{}", error.msg);
  }
  return builder.take();
}

/// A string, or a key. Characters that no terminal may be given are written as escapes.
void emit_text(YAML::Emitter& out, const std::string& text) {
  if (printable(text) != text) out << YAML::DoubleQuoted << YAML::EscapeNonAscii;
  out << text;
}

void emit(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : *value.if_object()) {
      out << YAML::Key;
      emit_text(out, key);
      out << YAML::Value;
      emit(out, member);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const Json& element : *value.if_array()) emit(out, element);
    out << YAML::EndSeq;
  } else if (const std::string* text = value.if_string()) {
    const bool ambiguous = text->empty() || boolean_of(*text) || number_of(*text) || integer_of(*text) ||
                           is_one_of(*text, {"~", "null", "Null", "NULL"});
    if (ambiguous) out << YAML::DoubleQuoted;
    emit_text(out, *text);
  } else {
    out << api::to_text(value);
  }
}

}  // namespace

const Origin* Origins::find(std::string_view path) const {
  if (path.empty()) return &origins_[kRoot];
  if (path.starts_with('[')) return find_below(kRoot, path);
  for (std::size_t end = path.find('[');; end = path.find('[', end + 1)) {  // a name may hold brackets
    if (const auto id = child(kRoot, path.substr(0, end)))
      if (const Origin* found = find_below(*id, path.substr(std::min(end, path.size())))) return found;
    if (end == std::string_view::npos) return nullptr;
  }
}

const Origin* Origins::find_below(Id parent, std::string_view rest) const {
  if (rest.empty()) return &origins_[parent];
  if (!rest.starts_with('[')) return nullptr;
  for (std::size_t end = rest.find(']'); end != std::string_view::npos; end = rest.find(']', end + 1)) {
    if (const auto id = child(parent, rest.substr(1, end - 1)))
      if (const Origin* found = find_below(*id, rest.substr(end + 1))) return found;
  }
  return nullptr;
}

const Origin& Origins::at(std::string_view path) const {
  const Origin* found = find(path);
  if (found == nullptr) throw std::out_of_range(std::string(path));
  return *found;
}

Origins::Id Origins::add(Id parent, std::string_view name) {
  const auto [place, fresh] = children_.try_emplace(Key(parent, name), origins_.size());
  if (fresh) origins_.emplace_back();
  return place->second;
}

std::optional<Origins::Id> Origins::child(Id parent, std::string_view name) const {
  const auto found = children_.find(View(parent, name));
  return found == children_.end() ? std::nullopt : std::optional(found->second);
}

Result<Document> parse(const std::string& file, const std::string& text, LeadingZero leading_zero) {
  SPILLWAY_TRY(documents, read_all(file, text, leading_zero, RepeatedKeys::kRefused, 1));
  return documents.empty() ? Document() : std::move(documents.front());
}

Result<std::vector<Document>> parse_documents(const std::string& file, const std::string& text, RepeatedKeys repeated,
                                              LeadingZero leading_zero, std::size_t documents_max) {
  return read_all(file, text, leading_zero, repeated, documents_max);
}

Result<Document> read_file(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error{ErrorCode::kNotFound, "cannot be opened", file};
  return read_stream(stream, file);
}

Result<std::string> read_text(std::istream& stream, const std::string& file) {
  std::string text;
  std::array<char, 64 * 1024> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (stream && text.size() <= kTextMax) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) return Error{ErrorCode::kNotFound, "cannot be read", file};
  return text;
}

Result<Document> read_stream(std::istream& stream, const std::string& file) {
  SPILLWAY_TRY(text, read_text(stream, file));
  return parse(file, text);
}

std::string to_text(const Json& value) {
  YAML::Emitter out;
  emit(out, value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace spillway::yaml
