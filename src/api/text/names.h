// Rules for names, label keys and label values, with the messages that clients expect.
// Thread: any. Source: Kubernetes docs, "Object Names and IDs", "Labels and Selectors"; spec "API server contract",
// 7.2, 7.3.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

// Each returns one text per problem; none: the text is fine.

/// [prefix/]name: prefix a DNS-1123 subdomain, name at most 63 characters of A-Z a-z 0-9 - _ . with alphanumeric ends.
std::vector<std::string> qualified_name_errors(std::string_view text);
/// Empty, or at most 63 characters of the same kind as a qualified name's.
std::vector<std::string> label_value_errors(std::string_view text);
/// Checks a name of at most 253 characters: lower-case labels joined by points.
std::vector<std::string> dns1123_subdomain_errors(std::string_view text);
/// Checks a name of at most 63 characters of a-z 0-9 - with alphanumeric ends.
std::vector<std::string> dns1123_label_errors(std::string_view text);

/// Checks a name of at most 63 characters of a-z 0-9 - that begins with a letter and ends alphanumeric: names of
/// services.
std::vector<std::string> dns1035_label_errors(std::string_view text);
/// Checks a text that will be a segment of a path: neither "." nor "..", no '/' and no '%'.
std::vector<std::string> path_segment_errors(std::string_view text);
/// Checks a text that will be a part of such a segment.
std::vector<std::string> path_segment_part_errors(std::string_view text);
/// "a; b".
std::string join_problems(const std::vector<std::string>& problems);

/// Joins errors as upstream prints an aggregate: one text as it is, several as "[a, b]" without repetitions.
std::string join_errors(const std::vector<std::string>& errors);

}  // namespace spillway::api
