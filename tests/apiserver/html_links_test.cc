// Links of HTML behind a proxy: which are rewritten, wherever a page is divided into pieces.
#include "apiserver/proxy/html_links.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace spillway::apiserver::html_links_tests {
namespace {

constexpr std::string_view kPrefix = "/api/v1/namespaces/default/pods/web/proxy";

HtmlLinks links() {
  return {{.prefix = std::string(kPrefix), .below = "/", .query = ""},
          {.server = "10.0.0.7:8080", .client = "api.example.com"}};
}

/// The page, which arrives in pieces of so many bytes. "~" of `page` and of the result stands for the prefix.
std::string shown(std::string_view page, std::size_t piece) {
  HtmlLinks all = links();
  std::string out;
  for (std::size_t at = 0; at < page.size(); at += piece) out += all.rewritten(page.substr(at, piece));
  out += all.rest();
  for (std::size_t at = out.find(kPrefix); at != std::string::npos; at = out.find(kPrefix, at)) {
    out.replace(at, kPrefix.size(), "~");
  }
  return out;
}

struct Row {
  std::string_view page;
  std::string_view want;
};

constexpr Row kRows[] = {
    {R"(<a href="/rewriteme">x</a>)", R"(<a href="~/rewriteme">x</a>)"},
    {R"(<A  HREF = '/x?y=1&amp;z#f' class=b>)", R"(<A  HREF = '~/x?y=1&amp;z#f' class=b>)"},
    {R"(<img src=/i.png><img alt="/x" src="/i">)", R"(<img src=~/i.png><img alt="/x" src="~/i">)"},
    {R"(<a href="x"><a href="./x"><a href="#f"><a href=""><a href>)",
     R"(<a href="x"><a href="./x"><a href="#f"><a href=""><a href>)"},
    {R"(<a href="http://10.0.0.7:8080/x"><a href="//api.example.com/y">)", R"(<a href="~/x"><a href="~/y">)"},
    {R"(<a href="https://other.example.com/x"><a href="mailto:a@b">)",
     R"(<a href="https://other.example.com/x"><a href="mailto:a@b">)"},
    {R"(<script src="/s.js">if (a<b) x='<a href="/no">';</script><a href="/y">)",
     R"(<script src="~/s.js">if (a<b) x='<a href="/no">';</script><a href="~/y">)"},
    {R"(<!-- <a href="/no"> --><form action="/f"/>)", R"(<!-- <a href="/no"> --><form action="~/f"/>)"},
    {R"(<title><a href="/no"></TITLE ><link href="/c.css">)", R"(<title><a href="/no"></TITLE ><link href="~/c.css">)"},
    {R"(<!DOCTYPE html><p title="a>b" onclick='x("</a>")'>1 < 2 <3 <></p><div src="/no">)",
     R"(<!DOCTYPE html><p title="a>b" onclick='x("</a>")'>1 < 2 <3 <></p><div src="/no">)"},
    {R"(<a title="x>y" href="/z">)", R"(<a title="x>y" href="~/z">)"},
    {R"(<a href="/cut)", R"(<a href="/cut)"},
    {R"(</a href="/x"><body background="/b"><object data="/d" usemap="/u"></object>)",
     R"(</a href="/x"><body background="~/b"><object data="~/d" usemap="~/u"></object>)"},
    {R"(<!---><a href="/x">)", R"(<!---><a href="~/x">)"},
    {R"(<!--><a href="/x">)", R"(<!--><a href="~/x">)"},
};

TEST(HtmlLinksTest, LeadBelowTheProxyWhereverAPageIsDivided) {
  for (const Row& row : kRows) {
    for (std::size_t piece = 1; piece <= row.page.size(); ++piece) {
      ASSERT_EQ(shown(row.page, piece), row.want) << "in pieces of " << piece;
    }
  }
}

TEST(HtmlLinksTest, ALinkThatLeadsBelowTheProxyAlreadyStays) {
  const std::string page = "<a href=\"" + std::string(kPrefix) + "/x\">";
  EXPECT_EQ(links().rewritten(page), page);
}

TEST(HtmlLinksTest, ALongTagStaysAndIsNotHeld) {
  const std::string tag = "<a title=\"" + std::string(2 * HtmlLinks::kTagBytesMax, 'x');
  HtmlLinks all = links();
  const std::string first = all.rewritten(tag);
  EXPECT_GT(first.size(), HtmlLinks::kTagBytesMax);
  EXPECT_EQ(all.rest(), "");
  EXPECT_EQ(links().rewritten(tag + "\" href=\"/x\">"), tag + "\" href=\"/x\">");
}

/// Time that grows with the square of a page would make this test take minutes.
TEST(HtmlLinksTest, PagesOfTagsAloneAreLinear) {
  for (const std::string_view part : {"<", "<a ", "</", "<a href=/>", "<!--", "<script></"}) {
    std::string page;
    while (page.size() < (std::size_t{4} << 20U)) page += part;
    HtmlLinks all = links();
    std::size_t bytes = 0;
    for (std::size_t at = 0; at < page.size(); at += 16'384) {
      bytes += all.rewritten(std::string_view(page).substr(at, 16'384)).size();
    }
    EXPECT_GE(bytes + all.rest().size(), page.size()) << part;
  }
}

TEST(HtmlLinksTest, APrefixEndsNoAttribute) {
  HtmlLinks all({.prefix = "/x'\"><script>&/proxy", .below = "/", .query = ""}, {});
  EXPECT_EQ(all.rewritten("<a href='/y'>"), "<a href='/x%27%22%3E%3Cscript%3E%26/proxy/y'>");
}

TEST(HtmlLinksTest, OnlyPlainHtmlIsRewritten) {
  const auto is_page = [](std::string type, std::string encoding) {
    api::Response head{.status = 200, .headers = {{"Content-Type", std::move(type)}}, .body = {}, .document = {}};
    if (!encoding.empty()) head.headers.emplace_back("Content-Encoding", std::move(encoding));
    return has_links(head);
  };
  EXPECT_TRUE(is_page("text/html", ""));
  EXPECT_TRUE(is_page("Text/HTML ; charset=utf-8", ""));
  EXPECT_FALSE(is_page("text/html", "gzip"));
  EXPECT_FALSE(is_page("text/htmlx", ""));
  EXPECT_FALSE(is_page("text/plain", ""));
}

}  // namespace
}  // namespace spillway::apiserver::html_links_tests
