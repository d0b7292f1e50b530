// Samples in Prometheus' text format.
#include "telemetry/exposition.h"

#include <gtest/gtest.h>

namespace spillway::telemetry {
namespace {

TEST(Exposition, WritesFamiliesAndSamples) {
  Exposition out;
  out.family("a_total", Exposition::Type::kCounter, "What it counts");
  out.sample({}, 3);
  out.sample({{"x", "1"}, {"y", ""}}, 0.25, WallTime(milliseconds(1234567) + microseconds(999)));
  out.family("b_bytes", Exposition::Type::kGauge, "How much");
  out.sample({{"x", "2"}}, 6055997440.0);
  EXPECT_EQ(out.text(),
            "# HELP a_total What it counts\n# TYPE a_total counter\na_total 3\na_total{x=\"1\",y=\"\"} 0.25 1234567\n"
            "# HELP b_bytes How much\n# TYPE b_bytes gauge\nb_bytes{x=\"2\"} 6055997440\n");
}

TEST(Exposition, OmitsFamiliesWithoutSamples) {
  Exposition out;
  out.family("nothing", Exposition::Type::kGauge, "Nothing");
  EXPECT_EQ(out.text(), "");
  out.family("something", Exposition::Type::kGauge, "Something");
  out.sample({}, 1);
  EXPECT_EQ(out.text(), "# HELP something Something\n# TYPE something gauge\nsomething 1\n");
}

TEST(Exposition, EscapesLabelValues) {
  Exposition out;
  out.family("a", Exposition::Type::kGauge, "h");
  out.sample({{"x", "a\"b\\c\nd"}}, 1);
  EXPECT_NE(out.text().find("a{x=\"a\\\"b\\\\c\\nd\"} 1\n"), std::string::npos) << out.text();
}

}  // namespace
}  // namespace spillway::telemetry
