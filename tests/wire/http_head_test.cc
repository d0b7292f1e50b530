// Heads of messages and the compression of bodies.
#include "wire/http/http_head.h"

#include "wire/http/gzip_stream.h"

#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

TEST(HttpHead, WritesDatesAsHttpDoes) {
  EXPECT_EQ(format_http_date(WallTime(seconds(784111777))), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(format_http_date(WallTime(seconds(951782400))), "Tue, 29 Feb 2000 00:00:00 GMT");
}

TEST(HttpHead, ReadsOffersOfGzip) {
  for (const char* yes : {"gzip", "GZIP", "deflate, gzip", "gzip;q=1.0", "br;q=1, gzip ; q=0.001"}) {
    EXPECT_TRUE(offers_gzip(yes)) << yes;
  }
  for (const char* no : {"", "identity", "gzip;q=0", "gzip; q=0.000", "x-gzip", "*"})
    EXPECT_FALSE(offers_gzip(no)) << no;
}

TEST(HttpHead, WritesRequests) {
  api::Request request;
  request.method = api::Method::kPost;
  request.target = "/api/v1/pods";
  request.headers = {{"accept", "application/json"}, {"host", "evil"}, {"content-length", "7"}};
  EXPECT_EQ(format_request_head(request, 0, "h:1"),
            "POST /api/v1/pods HTTP/1.1\r\nHost: h:1\r\naccept: application/json\r\nContent-Length: 0\r\n\r\n");
  request.method = api::Method::kGet;
  EXPECT_EQ(format_request_head(request, 0, "h:1"),
            "GET /api/v1/pods HTTP/1.1\r\nHost: h:1\r\naccept: application/json\r\n\r\n");
}

}  // namespace
}  // namespace spillway::wire
