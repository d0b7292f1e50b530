// Links in a page of HTML that a proxy returns, rewritten to lead below the proxy: attributes that hold a URL with an
// absolute path of the same server. Text of scripts and comments stays. A page is rewritten as it arrives. Thread:
// loop. Bound: kTagBytesMax of a tag are held; the links of a longer tag stay as they are.
// Source: Kubernetes 1.32, k8s.io/apimachinery util/proxy; HTML Living Standard, tokenization.
#pragma once

#include "apiserver/proxy/forwarding.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

/// True for the pages whose links are rewritten: HTML that is not compressed.
bool has_links(const api::Response& head);

class HtmlLinks {
 public:
  static constexpr std::size_t kTagBytesMax = 8'192;

  HtmlLinks(ProxiedPath path, ProxiedHosts hosts);

  /// The next piece of the page, as far as its tags are complete.
  std::string rewritten(std::string_view piece);

  /// The rest of the page, which ends with it.
  std::string rest() { return std::exchange(held_, {}); }

 private:
  /// Moves text before the next tag to `out`. False: there is no tag yet.
  bool pass_text(std::string& out);
  bool pass_comment(std::string& out);
  /// Passes on the raw text of an element until its end tag.
  bool pass_raw_text(std::string& out);
  /// Rewrites the tag at the beginning of what is held. False: it is not complete.
  bool pass_tag(std::string& out);
  std::string rewritten_tag(std::string_view tag) const;
  void pass(std::size_t bytes, std::string& out);

  ProxiedPath path_;
  ProxiedHosts hosts_;
  std::string held_;
  std::size_t at_ = 0;       // bytes of what is held that have been passed on
  std::string raw_element_;  // "script" after its start tag; empty: in other text
  bool in_comment_ = false;
};

}  // namespace spillway::apiserver
