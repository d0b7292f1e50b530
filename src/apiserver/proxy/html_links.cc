#include "apiserver/proxy/html_links.h"

#include "base/ascii.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace spillway::apiserver {
namespace {

constexpr std::string_view kCommentBegin = "<!--";
constexpr std::string_view kCommentEnd = "-->";
constexpr std::string_view kSpaces = " \t\r\n\f";

/// Attributes that hold a URL, as "ELEMENT ATTRIBUTE".
constexpr std::array<std::string_view, 35> kLinks = {
    "a href",          "applet codebase",   "area href",      "audio src",       "base href",       "blockquote cite",
    "body background", "button formaction", "command icon",   "del cite",        "embed src",       "form action",
    "frame longdesc",  "frame src",         "head profile",   "html manifest",   "iframe longdesc", "iframe src",
    "img longdesc",    "img src",           "img usemap",     "input src",       "input usemap",    "input formaction",
    "ins cite",        "link href",         "object classid", "object codebase", "object data",     "object usemap",
    "q cite",          "script src",        "source src",     "video poster",    "video src"};

/// Elements whose content is text, whatever it looks like.
constexpr std::array<std::string_view, 9> kRawElements = {"iframe", "noembed",  "noframes", "noscript", "script",
                                                          "style",  "textarea", "title",    "xmp"};

bool is_letter(char c) {
  return to_lower(c) >= 'a' && to_lower(c) <= 'z';
}

/// The bytes of the tag at the beginning of a text; nullopt: it does not end there.
std::optional<std::size_t> tag_size(std::string_view text) {
  char quote = '\0';
  bool is_after_equals = false;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '>') {
      return i + 1;
    } else if ((c == '"' || c == '\'') && is_after_equals) {
      quote = c;
    }
    if (!kSpaces.contains(c)) is_after_equals = c == '=';
  }
  return std::nullopt;
}

/// The name of an element, in lower case, behind "<" or "</".
std::string element_of(std::string_view tag) {
  tag.remove_prefix(tag.starts_with("</") ? 2 : 1);
  return lower_case(tag.substr(0, tag.find_first_of(" \t\r\n\f/>")));
}

}  // namespace

bool has_links(const api::Response& head) {
  const std::string type = lower_case(head.header("content-type"));
  const std::string_view media = trimmed(std::string_view(type).substr(0, type.find(';')));
  return media == "text/html" && head.header("content-encoding").empty();
}

HtmlLinks::HtmlLinks(ProxiedPath path, ProxiedHosts hosts) : path_(std::move(path)), hosts_(std::move(hosts)) {
  // The prefix becomes a part of attributes: it must not end one.
  std::string prefix;
  for (const char c : path_.prefix) {
    if (std::string_view("\"'<>&").contains(c)) {
      prefix += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      prefix += c;
    }
  }
  path_.prefix = std::move(prefix);
}

void HtmlLinks::pass(std::size_t bytes, std::string& out) {
  out.append(held_, at_, bytes);
  at_ += bytes;
}

std::string HtmlLinks::rewritten(std::string_view piece) {
  held_ += piece;
  std::string out;
  while (at_ < held_.size()) {
    const bool continues = in_comment_             ? pass_comment(out)
                           : !raw_element_.empty() ? pass_raw_text(out)
                                                   : pass_text(out) && pass_tag(out);
    if (!continues) break;
  }
  held_.erase(0, std::exchange(at_, 0));
  return out;
}

bool HtmlLinks::pass_text(std::string& out) {
  pass(std::min(held_.find('<', at_), held_.size()) - at_, out);
  return at_ < held_.size();
}

bool HtmlLinks::pass_comment(std::string& out) {
  const std::size_t end = held_.find(kCommentEnd, at_);
  in_comment_ = end == std::string::npos;
  // The end may be divided among two pieces.
  const std::size_t kept = std::min(held_.size() - at_, kCommentEnd.size() - 1);
  pass((in_comment_ ? held_.size() - kept : end + kCommentEnd.size()) - at_, out);
  return !in_comment_;
}

bool HtmlLinks::pass_raw_text(std::string& out) {
  const std::size_t name_size = raw_element_.size();
  std::size_t end = held_.find("</", at_);
  while (end != std::string::npos && held_.size() - end >= name_size + 2) {
    if (equal_ignoring_case(std::string_view(held_).substr(end + 2, name_size), raw_element_)) {
      pass(end - at_, out);
      raw_element_.clear();
      return true;
    }
    end = held_.find("</", end + 2);
  }
  const std::size_t kept = held_.ends_with('<') ? 1 : 0;
  pass((end == std::string::npos ? held_.size() - kept : end) - at_, out);
  return false;
}

bool HtmlLinks::pass_tag(std::string& out) {
  const std::string_view left = std::string_view(held_).substr(at_);
  if (left.starts_with(kCommentBegin)) {
    in_comment_ = true;
    pass(kCommentBegin.size() - 2, out);  // its dashes may be those of the end: <!-->
    return true;
  }
  const bool is_tag = left.size() >= 2 && (is_letter(left[1]) || left[1] == '/' || left[1] == '!');
  if (!is_tag && left.size() >= 2) {
    pass(1, out);
    return true;
  }
  const auto size = tag_size(left);
  if (!size && left.size() <= kTagBytesMax) return false;
  if (!size || *size > kTagBytesMax) {
    pass(size.value_or(left.size()), out);
    return true;
  }
  const std::string_view tag = left.substr(0, *size);
  at_ += tag.size();
  out += rewritten_tag(tag);
  std::string element = element_of(tag);
  const bool is_raw = is_letter(tag[1]) && std::ranges::find(kRawElements, element) != kRawElements.end();
  if (is_raw) raw_element_ = std::move(element);
  return true;
}

std::string HtmlLinks::rewritten_tag(std::string_view tag) const {
  if (!is_letter(tag[1])) return std::string(tag);
  const std::string element = element_of(tag);
  std::string out(tag.substr(0, 1 + element.size()));
  std::size_t at = out.size();
  while (at < tag.size()) {
    const std::size_t name_at = std::min(tag.find_first_not_of(" \t\r\n\f/", at), tag.size());
    const std::size_t name_end = std::min(tag.find_first_of(" \t\r\n\f/>=", name_at + 1), tag.size());
    out += tag.substr(at, name_end - at);
    at = name_end;
    const std::size_t equals = tag.find_first_not_of(kSpaces, at);
    if (equals == std::string_view::npos || tag[equals] != '=') continue;
    const std::size_t value_at = std::min(tag.find_first_not_of(kSpaces, equals + 1), tag.size());
    const bool is_quoted = value_at < tag.size() && (tag[value_at] == '"' || tag[value_at] == '\'');
    const std::size_t begin = value_at + (is_quoted ? 1 : 0);
    const std::size_t end =
        std::min(is_quoted ? tag.find(tag[value_at], begin) : tag.find_first_of(" \t\r\n\f>", begin), tag.size());
    out += tag.substr(at, begin - at);
    const std::string value(tag.substr(begin, end - begin));
    const std::string attribute = element + " " + lower_case(tag.substr(name_at, name_end - name_at));
    const bool is_link = std::ranges::find(kLinks, attribute) != kLinks.end();
    out += is_link ? returned_location(value, path_, hosts_) : value;
    at = end;
  }
  return out;
}

}  // namespace spillway::apiserver
